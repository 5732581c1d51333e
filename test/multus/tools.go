//go:build tools

// Package multus pins Multus. It is a module of its own because Multus needs older versions of Kubernetes' libraries.
package multus

import _ "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus"
