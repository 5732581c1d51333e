package main

import "github.com/OpenPeeDeeP/depguard/v2"

const (
	libovsdbClient = "github.com/ovn-kubernetes/libovsdb/client"
	product        = "**/go-controller/**/*.go"
	noTest         = "!$test"
)

// importRules say which packages may import what. Tests may import everything
// but urfave/cli.
func importRules() *depguard.LinterSettings {
	return &depguard.LinterSettings{
		// The core is silent and pure: no goroutine, clock, context, log or client.
		"pure": {
			Files: []string{
				"**/internal/cluster/*.go", "**/internal/cluster/index/*.go", "**/internal/allocate/*.go",
				"**/internal/nb/*.go", "**/internal/translate/*.go", "**/internal/translate/**/*.go", "**/internal/core/*.go",
				"**/internal/offline/*.go", "**/internal/hostplan/*.go", "**/internal/hostplan/**/*.go",
				"**/internal/subnet/*.go", "**/internal/verdict/*.go", "**/internal/reach/*.go", noTest,
			},
			Deny: map[string]string{
				"context": "the core is pure", "log": "the core is silent", "sync": "the core belongs to one goroutine",
				"time": "the core has no clock", "os": "the core has no files", "net/http": "the core has no clients",
				"k8s.io": "k8s.io types stop at kube", libovsdbClient: "the libovsdb client stops at ovsdb and ovs",
			},
		},
		// Clients stop where the architecture says.
		"libovsdb-client": {
			Files: []string{product, "!**/internal/ovsdb/*.go", "!**/internal/ovs/*.go", noTest},
			Deny:  map[string]string{libovsdbClient: "the libovsdb client stops at ovsdb and ovs"},
		},
		"kubernetes": {
			Files: []string{
				product, "!**/internal/kube/**/*.go", "!**/internal/master/*.go", "!**/internal/testkit/policytest/*.go", noTest,
			},
			Deny: map[string]string{
				"k8s.io/api": "k8s.io/api types stop at kube", "k8s.io/client-go": "client-go stops at kube",
			},
		},
		"netlink": {
			Files: []string{
				product, "!**/internal/hostnet/*.go", "!**/internal/hostnet/**/*.go", "!**/internal/cni/podif/*.go", noTest,
			},
			Deny: map[string]string{"github.com/vishvananda/netlink": "netlink stops at hostnet and cni/podif"},
		},
		// The rooms of translate never import each other.
		"rooms": {
			Files: []string{"**/internal/translate/*/*.go", "!**/internal/translate/all/*.go", noTest},
			Deny: map[string]string{
				"github.com/northbound-net/northbound/go-controller/internal/translate/": "a room imports no other room",
			},
		},
		"cli": {
			Files: []string{"**/go-controller/internal/**/*.go"},
			Deny:  map[string]string{"github.com/urfave/cli": "urfave/cli stops at cmd/ovnkube"},
		},
	}
}
