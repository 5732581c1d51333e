// Package oracles compares what Northbound's rows do with what libraries of others say of the same policies: those of
// kube-network-policies, of Cilium and of cyclonus. It has tests only. A module of its own keeps the libraries out of
// the product. Its path lies below the product's, so that the tests may import what is internal there.
package oracles
