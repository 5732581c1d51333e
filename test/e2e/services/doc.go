// Package services checks which backends answer at every address of a service, and which client they see. It covers
// every combination of client, backend, traffic policies, session affinity, protocol and address family.
//
// All services exist at the same time, and every client asks all of them at once. The answers are compared with the
// rules of the API, which rules_test.go implements a second time. The client addresses are in the tables of
// docs/features/services.md, which the test prints.
package services
