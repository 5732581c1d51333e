package networks

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// Where Multus has its files on a node.
const (
	multusConf       = "/etc/cni/net.d/00-multus.conf"
	multusKubeconfig = "/etc/cni/net.d/multus.d/multus.kubeconfig"
	multusLog        = "/var/log/multus.log"
)

// multusRights are those of Multus' own manifest.
//
//go:embed testdata/multus.yaml
var multusRights string

// mixed has two networks of OVN, of which one tells plugins its name, and one of the plugin macvlan.
//
//go:embed testdata/mixed.yaml
var mixed string

// tryMultus has Multus in front on one node of two. A pod there has an interface of another plugin, from Multus, and
// interfaces in networks of OVN, in which it reaches a pod on the node without Multus.
func tryMultus(t *testing.T, c *sandbox.Cluster) {
	n1 := c.Nodes[0]
	machines.Kubectl(t, c, multusRights, "apply", "-f", "-")
	defer machines.Kubectl(t, c, multusRights, "delete", "-f", "-")
	machines.Kubectl(t, c, mixed, "apply", "-f", "-")
	defer machines.Kubectl(t, c, "", "delete", "namespace", "mixed", "--timeout=90s")
	defer putMultusInFront(t, c, n1)()
	defer logMultus(t, c, n1)
	usesMultus(t, c, n1)
	apply(t, c, podWith("mixed", "one", "n1", "blue, lan, green@inner")+podWith("mixed", "two", "n1", "lan")+
		podWith("mixed", "far", "n2", "blue, green")+plainPod("plain", "n1"), "mixed",
		"one", "two", "far", "plain")
	t.Run("the cluster's own network", func(t *testing.T) {
		for from, to := range map[string]string{"far": "plain", "plain": "far", "one": "two"} {
			answers(t, c, "mixed", from, to, podIPs(t, c, to))
		}
	})
	t.Run("another plugin", func(t *testing.T) {
		answers(t, c, "mixed", "two", "one", on(t, c, "mixed", "one", "net2"))
		answers(t, c, "mixed", "one", "two", on(t, c, "mixed", "two", "net1"))
		hostInLAN(t, c, "one", on(t, c, "mixed", "one", "net2"))
	})
	t.Run("networks of OVN", func(t *testing.T) {
		for ours, theirs := range map[string]string{"net1": "net1", "inner": "net2"} {
			answers(t, c, "mixed", "far", "one", on(t, c, "mixed", "one", ours))
			answers(t, c, "mixed", "one", "far", on(t, c, "mixed", "far", theirs))
		}
		hasLinks(t, c, "one", "eth0", "inner", "lo", "net1", "net2")
		hasLinks(t, c, "two", "eth0", "lo", "net1")
		hasPorts(t, n1, "mixed_one", "mixed.blue_mixed_one_net1", "mixed.green_mixed_one_inner")
	})
	t.Run("nothing is left", func(t *testing.T) {
		machines.Kubectl(t, c, "", "delete", "pod", "-n", "mixed", "--all", "--timeout=60s")
		hasPorts(t, n1)
		machines.AwaitOutput(t, n1, "", "sh", "-c", "ls /var/lib/cni/networks/lan | grep -v -e lock -e last_reserved; true")
	})
}

// putMultusInFront has the runtime of a node call Multus, which calls Northbound for the cluster's own network. The
// result takes it away.
func putMultusInFront(t *testing.T, c *sandbox.Cluster, n *node.Node) (remove func()) {
	t.Helper()
	conf, err := clientcmd.LoadFromFile(c.Control.AdminKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	token := machines.Kubectl(t, c, "", "create", "token", "-n", "kube-system", "multus")
	for user := range conf.AuthInfos {
		conf.AuthInfos[user] = &api.AuthInfo{Token: token}
	}
	text, err := clientcmd.Write(*conf)
	if err != nil {
		t.Fatal(err)
	}
	machines.Run(t, n, "sh", "-ec", fmt.Sprintf(`ln -sf ovn_cni /opt/cni/bin/ovn-k8s-cni-overlay
ln -sf %[1]s/multus /opt/cni/bin/multus
cp /usr/lib/cni/macvlan /usr/lib/cni/host-local /opt/cni/bin/
mkdir -p $(dirname %[2]s)
cat >%[2]s <<'END'
%[3]s
END
cat >%[4]s.new <<'END'
{"cniVersion": "1.0.0", "name": "multus-cni-network", "type": "multus", "capabilities": {"portMappings": true},
 "clusterNetwork": "/etc/cni/net.d/10-ovn-kubernetes.conflist", "kubeconfig": "%[2]s", "namespaceIsolation": true,
 "logFile": "%[5]s", "logLevel": "verbose"}
END
mv %[4]s.new %[4]s`, member.BinDir, multusKubeconfig, text, multusConf, multusLog))
	return func() {
		machines.Run(t, n, "sh", "-ec", "cd /opt/cni/bin; rm ovn-k8s-cni-overlay multus macvlan host-local "+multusConf+" "+
			multusKubeconfig)
	}
}

// logMultus logs what Multus and the kubelet say, if the test has failed.
func logMultus(t *testing.T, c *sandbox.Cluster, n *node.Node) {
	t.Helper()
	if t.Failed() {
		events := machines.Kubectl(t, c, "", "get", "events", "-n", "mixed", "-o", "custom-columns=ON:.involvedObject.name,"+
			"TEXT:.message")
		t.Logf("Events:\n%s\nMultus:\n%s", events, machines.Run(t, n, "tail", "-n", "40", multusLog))
	}
}

// usesMultus waits until the agent of a node has seen that Multus is there, and the runtime calls it.
func usesMultus(t *testing.T, c *sandbox.Cluster, n *node.Node) {
	t.Helper()
	machines.AwaitOutput(t, n, "0", "sh", "-c", "grep -c cniVersions /etc/cni/net.d/10-ovn-kubernetes.conflist; true")
	machines.Eventually(t, "the runtime calls Multus", func(ctx context.Context) string {
		apply(t, c, plainPod("probe", n.Spec.Name), "mixed", "probe")
		machines.Kubectl(t, c, "", "delete", "pod", "-n", "mixed", "probe", "--timeout=60s")
		if out, err := n.Run(ctx, "grep", "Add: mixed:probe:", multusLog); err != nil {
			return fmt.Sprintf("%v %s: want a line of Multus about the pod", err, out)
		}
		return ""
	})
}

// plainPod is a pod that asks for no network.
func plainPod(name, node string) string {
	asks := ", annotations: {k8s.v1.cni.cncf.io/networks: \"\"}"
	return strings.Replace(podWith("mixed", name, node, ""), asks, "", 1)
}

// podIPs is a pod's addresses in the cluster's own network.
func podIPs(t *testing.T, c *sandbox.Cluster, pod string) (out []netip.Addr) {
	t.Helper()
	text := machines.Kubectl(t, c, "", "get", "pod", "-n", "mixed", pod, "-o", "jsonpath={.status.podIPs[*].ip}")
	for _, a := range strings.Fields(text) {
		out = append(out, netip.MustParseAddr(a))
	}
	if len(out) != 2 {
		t.Fatalf("pod %s has the addresses %v, want two", pod, out)
	}
	return out
}

// hostInLAN has a host of the NICs' network ask a pod there.
func hostInLAN(t *testing.T, c *sandbox.Cluster, pod string, to []netip.Addr) {
	t.Helper()
	change := func(verb string) {
		for _, text := range []string{"198.51.100.9/24", "2001:db8:51::9/64"} {
			if out, err := c.Control.Run(t.Context(), "ip", "addr", verb, text, "dev", underlay.Bridge); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	change("add")
	defer change("del")
	for _, a := range to {
		machines.Eventually(t, "a host asks "+a.String(), func(ctx context.Context) string {
			if got := machines.AskOn(ctx, c.Control.Member, "tcp", netip.AddrPortFrom(a, 8080)); !strings.HasPrefix(got,
				pod+" ") {
				return "got " + got
			}
			return ""
		})
	}
}

// hasLinks checks which interfaces a pod sees.
func hasLinks(t *testing.T, c *sandbox.Cluster, pod string, want ...string) {
	t.Helper()
	out := machines.Kubectl(t, c, "", "exec", "-n", "mixed", pod, "--", "ls", "/sys/class/net")
	if got := strings.Fields(out); !slices.Equal(got, want) {
		t.Errorf("pod %s has the interfaces %v, want %v", pod, got, want)
	}
}

// hasPorts waits until a node's Open vSwitch has exactly these ports of pods of the namespace that begin like the pod
// one.
func hasPorts(t *testing.T, n *node.Node, want ...string) {
	t.Helper()
	slices.Sort(want)
	machines.Eventually(t, "ports of pods", func(ctx context.Context) string {
		out, err := n.Run(ctx, "sh", "-ec", "ovs-vsctl --bare --columns=external_ids find Interface | "+
			"grep -o 'iface-id=[^ ]*_\\?mixed_one[^ ]*' | sed s/iface-id=// | sort")
		if got := strings.Fields(out); err != nil || !slices.Equal(got, want) {
			return fmt.Sprintf("%v %v, want %v", err, got, want)
		}
		return ""
	})
}
