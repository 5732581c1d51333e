// Package cluster is the Kubernetes cluster as the translators see it: plain, validated values, without client-go
// types, clients, locks or clocks.
//
// State holds the objects, what package allocate granted them (node subnets, pod addresses), and indexes. It changes in
// two ways only: Apply records what a source says of an object, and the Grant methods and DenyNode record what allocate
// decided. All return what they altered as a Change. A State belongs to one goroutine.
//
// Some of what an object means follows from others: which networks its names stand for (Resolve), and what the limits
// of its namespace leave of it (Shared). Package core applies such an object again when that changes.
//
// Values in a State are never modified in place. An update replaces the pointer, so that the Old and New of a Change
// stay comparable.
package cluster
