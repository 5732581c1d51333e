// Package networks has a checklist: the cases of ovn-kubernetes' end-to-end tests about networks and services, and for
// each the test of this project that proves the same behaviour, or why there is none. docs/conformance/networks.md is
// made from it. The package's tests run no cluster: they compare the page, and look for the tests that it names.
package networks
