// Package e2e proves, with real packets on a real three-node dual-stack
// cluster, what the product promises. It is black box: it runs bin/sandbox and
// looks with kubectl, ovn-nbctl, ping and sockets, as a person would.
//
// The cluster is brought up once for all tests and removed afterwards, also
// when tests fail or the run is interrupted. Tests wait for conditions with
// deadlines.
package e2e
