//go:build tools

// Package clusterpolicy keeps the conformance tests of network-policy-api in a go.mod of their own, to keep their
// dependencies out of all other builds. The tests are in a package of tests alone, so what they import is named here.
package clusterpolicy

import (
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	_ "sigs.k8s.io/controller-runtime/pkg/client/config"
	_ "sigs.k8s.io/network-policy-api/conformance"
	_ "sigs.k8s.io/network-policy-api/conformance/tests"
)
