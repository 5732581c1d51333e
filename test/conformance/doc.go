// Package conformance runs Kubernetes' own end-to-end tests of networking on a
// sandbox, and says which pass.
//
// The specs are all of [sig-network] in e2e.test, less those that exclude.txt
// names with a reason. Those of which failing.txt says that they fail do run:
// a run is good when exactly they fail, so that the list stays true. What came
// out is written to docs/conformance.md when all of them were run.
//
// Nothing is pulled from a registry: the images that the specs ask for are made
// here, under the names that e2e.test itself lists, from agnhost, busybox and
// programs of this machine. Cluster DNS is CoreDNS, built from source (dns/).
// Kubernetes' tests and CoreDNS have modules of their own (suite/, dns/), so
// that their weight stays out of the other tests' build.
package conformance
