package attacks

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// databases are the addresses of the machine that the databases run on.
func (b bed) databases() []netip.Prefix {
	if b.RunsChart() {
		return b.Nodes[0].Config.Addrs
	}
	return b.Control.Config.Addrs
}

// servers are the databases and the API server, by each address of their machines.
func (b bed) servers() (out []netip.AddrPort) {
	add := func(at []netip.Prefix, ports ...uint16) {
		for _, a := range at {
			for _, port := range ports {
				out = append(out, netip.AddrPortFrom(a.Addr(), port))
			}
		}
	}
	add(b.databases(), control.NBPort, control.SBPort)
	add(b.Control.Config.Addrs, control.APIPort)
	return out
}

// keys are those of n2 for the Southbound database and of the master for the Northbound database, as files that n2 can
// read.
func (b bed) keys(t *testing.T) (own, master control.Keys) {
	t.Helper()
	if !b.RunsChart() {
		return control.NodeKeys(b.Options.State(), "n2"), b.Control.NBKeys()
	}
	const dir = "/var/lib/northbound/certificates/"
	own = control.Keys{Key: dir + "ovn-sb-current.pem", Cert: dir + "ovn-sb-current.pem", CA: dir + "ovn-sb-ca.crt"}
	stolen := func(name string) string {
		file := filepath.Join(b.Nodes[1].Spec.Dir(), name)
		text := machines.Kubectl(t, b.Cluster, "", "--namespace", sandbox.Namespace, "exec", "daemonset/ovnkube-master",
			"--container", "master", "--", "cat", "/certificates/"+name)
		must(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
		return file
	}
	pair := stolen("ovn-nb-current.pem")
	return own, control.Keys{Key: pair, Cert: pair, CA: stolen("ovn-nb-ca.crt")}
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
