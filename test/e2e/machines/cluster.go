package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/sctp"
)

// Kubectl returns the output of kubectl without surrounding white space.
func Kubectl(t *testing.T, c *sandbox.Cluster, stdin string, args ...string) string {
	t.Helper()
	cmd := c.Kubectl(t.Context(), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// InSync waits until the Northbound database of a cluster holds what is wanted. On a cluster with the chart, it asks in
// the master's container, and without a flag.
func InSync(t *testing.T, c *sandbox.Cluster) {
	t.Helper()
	plan := func(ctx context.Context) ([]byte, error) {
		if c.RunsChart() {
			return c.Kubectl(ctx, "--namespace", sandbox.Namespace, "exec", "daemonset/ovnkube-master", "--container",
				"master", "--", "ovnkube", "plan").CombinedOutput()
		}
		out, err := c.Control.Run(ctx, "ovnkube", "plan", "--log-level", "error", "--kubeconfig",
			c.Control.AdminKubeconfig(), "--nb-address", "unix:"+control.NBSocket)
		return []byte(out), err
	}
	Eventually(t, "ovnkube plan", func(ctx context.Context) string {
		out, err := plan(ctx)
		if err != nil {
			return fmt.Sprintf("%v\n%s", err, out)
		}
		return ""
	})
}

// FlowsInSync waits until the nodes' flows are those of the Northbound database, which is in sync.
func FlowsInSync(t *testing.T, c *sandbox.Cluster) {
	t.Helper()
	InSync(t, c)
	if _, err := c.NBCtl(t.Context(), "--wait=hv", "--timeout=60", "sync"); err != nil {
		t.Fatal(err)
	}
}

// Databases are the addresses of the machine with the databases of a cluster.
func Databases(c *sandbox.Cluster) []netip.Prefix {
	if c.RunsChart() {
		return c.Nodes[0].Config.Addrs
	}
	return c.Control.Config.Addrs
}

// MasterKeys are those of the master for the Northbound database, as files that a node can read. On a cluster of the
// chart they are taken from the master's pod.
func MasterKeys(t *testing.T, c *sandbox.Cluster, n *node.Node) control.Keys {
	t.Helper()
	if !c.RunsChart() {
		return c.Control.NBKeys()
	}
	taken := func(name string) string {
		file := filepath.Join(n.Spec.Dir(), name)
		text := Kubectl(t, c, "", "--namespace", sandbox.Namespace, "exec", "daemonset/ovnkube-master", "--container",
			"master", "--", "cat", "/certificates/"+name)
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	pair := taken("ovn-nb-current.pem")
	return control.Keys{Key: pair, Cert: pair, CA: taken("ovn-nb-ca.crt")}
}

// Addresses returns an object's addresses at a JSON path, such as "{.status.podIPs[*].ip}".
func Addresses(t *testing.T, c *sandbox.Cluster, kind, name, path string) (out []netip.Addr) {
	t.Helper()
	for _, s := range strings.Fields(Kubectl(t, c, "", "get", kind, name, "-o", "jsonpath="+path)) {
		ip, err := netip.ParseAddr(s)
		if err != nil {
			t.Fatalf("%s %s has %s: %v", kind, name, path, err)
		}
		out = append(out, ip)
	}
	return out
}

// PodIPs returns a pod's addresses.
func PodIPs(t *testing.T, c *sandbox.Cluster, pod string) []netip.Addr {
	t.Helper()
	return Addresses(t, c, "pod", pod, "{.status.podIPs[*].ip}")
}

// Subnets returns the pod subnets of a node, from its Node.
func Subnets(t *testing.T, c *sandbox.Cluster, node string) []netip.Prefix {
	t.Helper()
	var subnets struct{ Default []netip.Prefix }
	raw := Kubectl(t, c, "", "get", "node", node, "-o", `jsonpath={.metadata.annotations.k8s\.ovn\.org/node-subnets}`)
	if err := json.Unmarshal([]byte(raw), &subnets); err != nil {
		t.Fatalf("subnets %q of %s: %v", raw, node, err)
	}
	return subnets.Default
}

// ManagementAddresses returns the addresses of a node's management port: the second address of each of its subnets.
func ManagementAddresses(t *testing.T, c *sandbox.Cluster, node string) (out []netip.Addr) {
	t.Helper()
	for _, s := range Subnets(t, c, node) {
		out = append(out, s.Addr().Next().Next())
	}
	return out
}

// Echo is the client and server program on the machines. EchoInPod is its path in pods of the image localhost/echo:1.
const (
	Echo      = "/opt/northbound/bin/echo"
	EchoInPod = "/bin/echo-server"
)

// Protocols are those that Echo supports. A test that needs them fails at once, with the reason, if one is unavailable.
func Protocols(t *testing.T) []string {
	t.Helper()
	if err := sctp.Usable(); err != nil {
		t.Fatal(err)
	}
	return []string{"tcp", "udp", "sctp"}
}

// AskOn asks a server once from a machine. It returns the server's name and the client address that the server sees, or
// what failed.
func AskOn(ctx context.Context, m *member.Member, protocol string, to netip.AddrPort) string {
	out, err := m.Run(ctx, append([]string{Echo}, question(protocol, to)...)...)
	return answer(out, err)
}

// AskIn is AskOn for a pod of the namespace default.
func AskIn(ctx context.Context, c *sandbox.Cluster, pod, protocol string, to netip.AddrPort) string {
	return AskFrom(ctx, c, "default", pod, protocol, to)
}

// AskFrom is AskOn for a pod: the question goes out of the pod's network, without kubectl exec.
func AskFrom(ctx context.Context, c *sandbox.Cluster, namespace, pod, protocol string, to netip.AddrPort) string {
	cmd, err := EchoFrom(ctx, c, namespace, pod, question(protocol, to)...)
	if err != nil {
		return err.Error()
	}
	out, err := cmd.CombinedOutput()
	return answer(string(out), err)
}

// Dropped tells whether an answer of AskOn, or of Echo, says that packets were dropped: nobody refused them.
func Dropped(answer string) bool {
	return strings.Contains(answer, "deadline exceeded") || strings.Contains(answer, "i/o timeout")
}

// EchoFrom returns Echo with arguments, to run in the network of a pod.
func EchoFrom(ctx context.Context, c *sandbox.Cluster, namespace, pod string, args ...string) (*exec.Cmd, error) {
	program := filepath.Join(c.Options.BinDir, filepath.Base(Echo))
	return c.PodNetworkCommand(ctx, namespace, pod, append([]string{program}, args...)...)
}

func question(protocol string, to netip.AddrPort) []string {
	return []string{"ask", protocol, to.String(), "1", "1s"}
}

func answer(out string, err error) string {
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return strings.TrimSpace(out)
}
