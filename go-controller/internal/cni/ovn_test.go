package cni_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// startOVN runs OVN on the bed's Open vSwitch, with a logical switch for its pods. With withController, it also runs
// the node's ovn-controller.
func (b *bed) startOVN(t *testing.T, withController bool) {
	t.Helper()
	sb := testkit.StartOVN(t)
	testkit.Run(t, "ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:ovn-remote="+sb, "external_ids:system-id="+
		nodeName,
		"external_ids:ovn-encap-type=geneve", "external_ids:ovn-encap-ip=127.0.0.1",
		"external_ids:ovn-bridge-datapath-type=netdev")
	// ovn-northd must have written before a chassis registers. Its first transaction may fail otherwise, and it does not
	// try again before the next change.
	testkit.Run(t, "ovn-nbctl", "--timeout=20", "--wait=sb", "ls-add", "sw")
	if withController {
		startController(t)
	}
}

// startController runs the node's ovn-controller, and returns once it has registered and installed its first flows.
func startController(t *testing.T) {
	t.Helper()
	testkit.StartOVNController(t)
	testkit.Run(t, "ovn-sbctl", "--timeout=20", "wait-until", "Chassis", nodeName)
	testkit.Eventually(t, "ovn-controller has its first flows in", func() string {
		if flows := testkit.Run(t, "ovs-ofctl", "dump-flows", "br-int"); !strings.Contains(flows, "table=0") {
			return "got " + flows
		}
		return ""
	})
}

// logicalPort creates a pod's ports in the Northbound database, as the master does.
func logicalPort(t *testing.T, p pod) {
	t.Helper()
	create := func(port string, n annotation.PodNetwork) {
		addresses := n.MAC.String()
		for _, ip := range n.IPs {
			addresses += " " + ip.Addr().String()
		}
		testkit.Run(t, "ovn-nbctl", "lsp-add", "sw", port, "--", "lsp-set-addresses", port, addresses, "--",
			"lsp-set-port-security", port, addresses,
			"--", "lsp-set-options", port, "requested-chassis="+nodeName, "iface-id-ver="+p.uid)
	}
	create("default_"+p.name, p.network())
	for key, n := range p.further {
		network, iface := names.EntryOf(key)
		create(network.LogicalPort("default", p.name, iface), n)
	}
}

// isBound waits until the node's ovn-controller has claimed the pod's port.
func isBound(t *testing.T, p pod) {
	t.Helper()
	testkit.Run(t, "ovn-sbctl", "--timeout=20", "wait-until", "Port_Binding", "default_"+p.name, "chassis!=[]")
}

// signal sends a signal to the process of a pidfile.
func signal(t *testing.T, name, pidfile string) {
	t.Helper()
	testkit.Run(t, "sh", "-c", fmt.Sprintf("kill -%s $(cat %s)", name, pidfile))
}

// neighbours lists the neighbours that a pod's kernel has learned, without their states.
func neighbours(t *testing.T, ns string) string {
	t.Helper()
	return strings.TrimSpace(testkit.Run(t, "ip", "-n", ns, "neigh", "show"))
}
