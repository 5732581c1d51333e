//go:build tools

// Package multus pins the plugin Multus. It is a module of its own because Multus needs other versions of Kubernetes'
// libraries than the tests.
package multus

import _ "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus"
