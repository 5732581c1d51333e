package systemd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/release/deb"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
)

// page is what the test types from.
const page = "../../../docs/operate/service.md"

// Default ports of the daemons' metrics.
const masterPort, agentPort = 9409, 9410

// TestSystemd installs the Debian package on a machine with systemd, starts master and agent by their units, and types
// what the page says. The units' restrictions hold: nothing of what the daemons do may be refused.
func TestSystemd(t *testing.T) {
	t.Setenv(sandbox.InstallVariable, "")
	root, err := rootfs.Ensure(t.Context(), rootfs.DefaultCache, rootfs.Tested, progress.New(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	c := machines.Up(t, sandbox.Options{Name: "systemd-test", Nodes: 2, DualStack: true})
	n := c.Nodes[1]
	vacate(t, c, n)
	dir := t.TempDir()
	for name, version := range map[string]string{"first": "v1.2.3", "later": "v1.2.4"} {
		pack(t, filepath.Join(dir, name+".deb"), version)
	}
	m := boot(t, c, n, root, dir)
	m.does(t, "dpkg --install /root/first.deb")
	configure(t, c, n, m)
	start(t, m)
	m.does(t, "ip netns add web")
	addPod(t, c, n, m, "web", "/run/netns/web")
	// Some runtimes name a process of the pod, which has another user.
	m.does(t, "systemd-run --unit=pause --uid=nobody --property=PrivateNetwork=yes sleep infinity")
	addPod(t, c, n, m, "process", "/proc/"+m.pid(t, "pause")+"/ns/net")
	boots(t, c, n, m)
	m.restarts(t, "ovnkube-node", agentPort)
	m.restarts(t, "ovnkube-master", masterPort)
	upgrade(t, m)
	refused := m.does(t, "journalctl --no-pager --output cat --unit ovnkube-node --unit ovnkube-master > /tmp/said; "+
		"grep --quiet 'node is ready for pods' /tmp/said; { grep --ignore-case 'permission denied\\|operation not "+
		"permitted\\|read-only file system\\|bad system call\\|address family not supported' /tmp/said || true; }")
	if refused != "" {
		t.Errorf("the units refuse what the daemons do:\n%s", refused)
	}
	uninstall(t, m)
}

// vacate ends what serves a node, as docs/operate/service.md says, and the master: the machine takes their places.
func vacate(t *testing.T, c *sandbox.Cluster, n *node.Node) {
	t.Helper()
	for _, service := range []string{node.Kubelet, node.Agent} {
		if err := n.StopService(t.Context(), service, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	machines.Run(t, n, "ovn-appctl", "-t", "ovn-controller", "exit")
	if err := n.StopService(t.Context(), node.Controller, syscall.SIGTERM); err != nil { // waits for its end
		t.Fatal(err)
	}
	machines.Run(t, n, "ovnkube", "cleanup", "node")
	if err := c.Control.StopService(t.Context(), control.Master, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// pack makes a package.
func pack(t *testing.T, file, version string) {
	t.Helper()
	err := deb.Build(t.Context(), deb.Source{Programs: "../../../bin", Units: "../../../dist/systemd",
		License: "../../../LICENSE", Version: version, Architecture: runtime.GOARCH, Time: time.Now()}, file)
	if err != nil {
		t.Fatal(err)
	}
}

// configure writes the services' settings, as an operator does.
func configure(t *testing.T, c *sandbox.Cluster, n *node.Node, m *machine) {
	t.Helper()
	_, agent := control.NodeKubeconfigs(c.Options.State(), n.Spec.Name)
	sb, nb := control.NodeKeys(c.Options.State(), n.Spec.Name), c.Control.NBKeys()
	settings := map[string]map[string]string{
		"ovnkube-node": {
			"KUBECONFIG": agent, "SB_ADDRESS": control.Remote(n.Config.Machines, control.SBPort),
			"SB_PRIVKEY": sb.Key, "SB_CERT": sb.Cert, "SB_CACERT": sb.CA, "DATAPATH_TYPE": "netdev", "MTU": "1400",
			"ENCAP_IP": n.Config.Addrs[0].Addr().String(),
		},
		"ovnkube-master": {
			"KUBECONFIG": filepath.Join(c.Control.Dir(), "master.kubeconfig"),
			"NB_ADDRESS": control.Remote(n.Config.Machines, control.NBPort),
			"NB_PRIVKEY": nb.Key, "NB_CERT": nb.Cert, "NB_CACERT": nb.CA,
			"CLUSTER_SUBNETS": n.Config.ClusterSubnets, "K8S_SERVICE_CIDRS": n.Config.ServiceCIDRs,
		},
	}
	for unit, values := range settings {
		var lines strings.Builder
		for name, value := range values {
			fmt.Fprintf(&lines, "NORTHBOUND_%s=%s\n", name, value)
		}
		m.does(t, fmt.Sprintf("cat >> /etc/default/%s <<'END'\n%sEND", unit, lines.String()))
	}
}

// start types what the page says, and the same for the master.
func start(t *testing.T, m *machine) {
	t.Helper()
	m.does(t, "systemctl enable --now ovnkube-master")
	m.ready(t, masterPort)
	m.says(t, "ok", "{ "+typed(t, "systemctl enable --now ovnkube-node")+"; } || true") // it takes a second to listen
	m.says(t, "no problems", "{ "+typed(t, "ovnkube doctor")+"; } | grep -o 'no problems' || true")
}

// typed is the block of the page, below "Install", that has some words.
func typed(t *testing.T, words string) string {
	t.Helper()
	for _, block := range machines.Blocks(t, page, "## Install") {
		if strings.Contains(block, words) {
			return block
		}
	}
	t.Fatalf("%s has no command with %q below Install", page, words)
	return ""
}

// addPod adds a pod to the network as a container runtime does, and takes it away. netns is its network namespace.
func addPod(t *testing.T, c *sandbox.Cluster, n *node.Node, m *machine, pod, netns string) {
	t.Helper()
	machines.Kubectl(t, c, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"+
		"spec: {nodeName: %s, containers: [{name: c, image: none}]}\n", pod, n.Spec.Name), "apply", "-f", "-")
	uid := machines.Kubectl(t, c, "", "get", "pod", pod, "--output", "jsonpath={.metadata.uid}")
	plugin := func(command string) string {
		return fmt.Sprintf(`CNI_COMMAND=%s CNI_CONTAINERID=%[2]s-sandbox CNI_NETNS=%[3]s CNI_IFNAME=eth0 \
CNI_PATH=/opt/cni/bin CNI_ARGS='K8S_POD_NAMESPACE=default;K8S_POD_NAME=%[2]s;K8S_POD_UID=%[4]s' \
/opt/cni/bin/ovn_cni <<'END'
{"cniVersion": "1.1.0", "name": "ovn-kubernetes", "type": "ovn_cni"}
END`, command, pod, netns, uid)
	}
	var result struct{ IPs []struct{ Gateway string } }
	if said := m.does(t, plugin("ADD")); json.Unmarshal([]byte(said), &result) != nil || len(result.IPs) != 2 {
		t.Fatalf("ADD: %s, want addresses of two families", said)
	}
	for _, ip := range result.IPs {
		// ovn-controller answers neighbor solicitations itself, once the thread that does so has connected to the switch.
		m.says(t, "answered", fmt.Sprintf("nsenter --net=%s ping -c 1 -W 5 %s && echo answered", netns, ip.Gateway))
	}
	m.does(t, plugin("DEL"))
	machines.Kubectl(t, c, "", "delete", "pod", pod, "--grace-period=0", "--force")
}

// boots moves the machine's NIC into a bridge, types what docs/features/bridge.md says, and has systemd end everything
// and boot again. The bridge's interface goes with ovs-vswitchd, and its addresses with it, as when a machine boots.
func boots(t *testing.T, c *sandbox.Cluster, n *node.Node, m *machine) {
	t.Helper()
	m.does(t, "ovnkube nics-to-bridge eth0 --datapath-type netdev --confirm-target "+
		strings.TrimPrefix(c.Control.Server(), "https://"))
	for _, block := range machines.Blocks(t, "../../../docs/features/bridge.md", "## At boot") {
		m.does(t, block)
	}
	before := m.pid(t, "ovs-vswitchd")
	m.does(t, "systemctl soft-reboot")
	machines.Within(t, time.Minute, "systemd has booted again", func(ctx context.Context) string {
		pid, err := m.show(ctx, "MainPID", "ovs-vswitchd")
		if err != nil || pid == before || pid == "0" {
			return fmt.Sprintf("ovs-vswitchd had process %s, and has %s (%v)", before, pid, err)
		}
		return m.running(ctx)
	})
	for _, a := range n.Config.Addrs {
		m.says(t, a.String(), fmt.Sprintf("ip -o address show dev breth0 | grep -o -F %s || true", a))
	}
	m.ready(t, masterPort, agentPort)
}

// restarts kills a service. systemd starts it again.
func (m *machine) restarts(t *testing.T, service string, port int) {
	t.Helper()
	before, restarts := m.pid(t, service), m.does(t, "systemctl show --property NRestarts --value "+service)
	m.does(t, "systemctl kill --signal KILL "+service)
	machines.Eventually(t, service+" runs again", func(ctx context.Context) string {
		pid, err := m.show(ctx, "MainPID", service)
		count, errCount := m.show(ctx, "NRestarts", service)
		if err != nil || errCount != nil || pid == before || pid == "0" || count == restarts {
			return fmt.Sprintf("it had process %s after %s restarts, and has %s after %s (%v, %v)", before, restarts, pid, count,
				err, errCount)
		}
		return ""
	})
	m.ready(t, port)
}

// upgrade installs a later package. The services that run are started again, and keep their settings.
func upgrade(t *testing.T, m *machine) {
	t.Helper()
	master, agent := m.pid(t, "ovnkube-master"), m.pid(t, "ovnkube-node")
	m.does(t, "dpkg --install /root/later.deb")
	m.ready(t, masterPort, agentPort)
	if m.pid(t, "ovnkube-master") == master || m.pid(t, "ovnkube-node") == agent {
		t.Errorf("after the upgrade, the master's process %s or the agent's %s still runs", master, agent)
	}
}

// uninstall types what the page says, and what docs/features/bridge.md says about the NIC.
func uninstall(t *testing.T, m *machine) {
	t.Helper()
	blocks := machines.Blocks(t, page, "## Uninstall a node")
	command, _, ok := strings.Cut(blocks[len(blocks)-1], "rm -f")
	if !ok {
		t.Fatalf("%s says no \"rm -f\", but\n%s", page, command)
	}
	m.does(t, command)
	m.says(t, "Nothing to clean up.", "ovnkube cleanup node")
	m.does(t, "systemctl disable ovnkube-bridge@eth0")
	m.does(t, "ovnkube bridges-to-nic breth0")
	m.does(t, "systemctl disable --now ovnkube-master")
	m.does(t, "apt-get purge --yes northbound")
	left := m.does(t, `systemctl list-unit-files --no-legend 'ovnkube*' || true
		ovs-vsctl list-br
		for directory in /etc/cni/net.d /opt/cni/bin /etc/default /usr/bin /usr/lib/systemd; do
			[ ! -e $directory ] || find $directory -name '*ovn*k*' -o -name '*ovn_cni*'
		done`)
	if left != "" {
		t.Errorf("left on the machine:\n%s", left)
	}
}
