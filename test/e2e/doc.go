// Package e2e checks the product's promises with real packets on a real three-node dual-stack cluster. It is a black
// box test: it runs bin/sandbox and observes with kubectl, ovn-nbctl, ping and sockets, as people do.
//
// One cluster serves all tests. It is removed afterwards, even if tests fail or the run is interrupted. Tests wait for
// conditions with deadlines.
package e2e
