// Package agent imports clients that stop elsewhere.
package agent

import (
	_ "github.com/ovn-kubernetes/libovsdb/client" // want depguard
	_ "github.com/urfave/cli"                     // want depguard
	_ "github.com/vishvananda/netlink"            // want depguard
	_ "k8s.io/api/core/v1"                        // want depguard
)
