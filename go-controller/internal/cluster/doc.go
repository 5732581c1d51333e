// Package cluster is the Kubernetes cluster as the translators see it: plain,
// validated values, without client-go types, clients, locks or clocks.
//
// State holds the objects, what package allocate granted them (node subnets, pod
// addresses), and the indexes that translators need. It is changed in two ways
// only, Apply (the cluster said so) and Grant (allocate said so), and each tells
// what it altered as a Change. A State belongs to one goroutine.
//
// Values in a State are never modified in place: an update replaces the
// pointer, so that the Old and New of a Change stay comparable.
package cluster
