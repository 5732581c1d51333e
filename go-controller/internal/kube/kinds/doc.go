// Package kinds says everything that the program knows of each Kubernetes kind: one row per kind, and its decoder. A
// new kind is a new row and a decoder here. Watches, manifests, Events, patches and permissions follow from the rows.
//
// A decoder turns an API object into a cluster value. A field that it does not understand is left out, and a Problem
// names the field, its value and what would be right. The rest of the object and all other objects are used. Nothing
// may be dropped silently that would change the network.
package kinds
