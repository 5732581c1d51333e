// Package conformance runs Kubernetes' own end-to-end tests of networking on a sandbox, and reports which pass.
//
// The specs are all of [sig-network] in e2e.test, except those that exclude.txt names with a reason. The known failures
// in failing.txt do run: a run succeeds only if exactly they fail, so that the list stays true. The results are written
// to docs/conformance.md if all specs were run.
//
// The same specs also run beside primary networks, and inside one: failing-inside.txt has the failures that are known
// there. These results are in docs/conformance/primary-networks.md.
//
// It also runs network-policy-api's own tests of ClusterNetworkPolicies, which write a report by themselves.
//
// Nothing is pulled from a registry: the images that the specs use are made here, under the names that e2e.test itself
// lists, from agnhost, busybox and programs of this machine. Cluster DNS is CoreDNS, built from source (dns/).
// Kubernetes' tests, those of network-policy-api and CoreDNS have modules of their own (suite/, clusterpolicy/, dns/),
// to keep them out of the build of the other tests.
package conformance
