package attacks

import (
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// servers are the databases and the API server, by each address of their machines.
func (b bed) servers() (out []netip.AddrPort) {
	add := func(at []netip.Prefix, ports ...uint16) {
		for _, a := range at {
			for _, port := range ports {
				out = append(out, netip.AddrPortFrom(a.Addr(), port))
			}
		}
	}
	add(machines.Databases(b.Cluster), control.NBPort, control.SBPort)
	add(b.Control.Config.Addrs, control.APIPort)
	return out
}

// keys are those of n2 for the Southbound database and of the master for the Northbound database, as files that n2 can
// read.
func (b bed) keys(t *testing.T) (own, master control.Keys) {
	t.Helper()
	master = machines.MasterKeys(t, b.Cluster, b.Nodes[1])
	if !b.RunsChart() {
		return control.NodeKeys(b.Options.State(), "n2"), master
	}
	const dir = "/var/lib/northbound/certificates/"
	const pair = dir + "ovn-sb-current.pem"
	return control.Keys{Key: pair, Cert: pair, CA: dir + "ovn-sb-ca.crt"}, master
}

// controllerLog is what ovn-controller on a node has logged.
func (b bed) controllerLog(t *testing.T, n *node.Node) string {
	t.Helper()
	if !b.RunsChart() {
		return machines.Run(t, n, "cat", "/var/log/ovn/ovn-controller.log")
	}
	pod := machines.Kubectl(t, b.Cluster, "", "--namespace", sandbox.Namespace, "get", "pods", "--selector",
		"app=ovnkube-node", "--field-selector", "spec.nodeName="+n.Spec.Name, "--output", "name")
	return machines.Kubectl(t, b.Cluster, "", "--namespace", sandbox.Namespace, "logs", pod, "--container",
		"ovn-controller")
}
