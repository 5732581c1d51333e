// Package policy checks NetworkPolicies with real packets, on a cluster of two nodes of which one is a gateway.
//
// One test asks every combination of a policy's rule, a client, a way to the server, a protocol and an address family,
// in both directions. What must arrive is worked out from the words of the API. The tables are those of
// docs/features/policy.md. The other tests look for packets that pass, or are lost, while pods, labels and the master
// come and go.
package policy
