// Package services proves who answers at every address of a service and whom
// the backend sees, for every combination of client, backend, traffic policies,
// session affinity, protocol and address family.
//
// All services are there at once, and every client asks all of them at the same
// time. Who answers is held against the rules of the API, written down once more
// in rules.go; what the backends see is in the tables of
// docs/features/services.md, which the test prints.
package services
