// Package cluster is the Kubernetes cluster as the translators see it: plain, validated values, without client-go
// types, clients, locks or clocks.
//
// State holds the objects, what package allocate granted them (node subnets, pod addresses), and indexes. It changes in
// two ways only: Apply records what a source says of an object, and the Grant methods record what allocate granted.
// Both return what they altered as a Change. A State belongs to one goroutine.
//
// Values in a State are never modified in place. An update replaces the pointer, so that the Old and New of a Change
// stay comparable.
package cluster
