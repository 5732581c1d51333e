package networks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// The files that the documentation tells users to apply.
const (
	crd     = "../../../dist/kubernetes/networkattachmentdefinition.yaml"
	example = "../../../docs/features/networks.yaml"
)

// tenants have the same addresses on the same subnets, each in a network of its own.
const tenants = `
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: own, namespace: %[1]s}
spec:
  config: |
    {"cniVersion": "1.1.0", "name": "own", "type": "ovn-k8s-cni-overlay", "topology": "layer2",
     "subnets": "10.77.0.0/24,fd77::/64"}
---
`

// podWith is a pod on a node that asks for networks.
func podWith(namespace, name, node, networks string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %q, namespace: %q, annotations: {k8s.v1.cni.cncf.io/networks: %q}}
spec:
  nodeName: %q
  terminationGracePeriodSeconds: 0
  containers: [{name: echo, image: "localhost/echo:1", imagePullPolicy: IfNotPresent}]
---
`, name, namespace, networks, node)
}

// definition is a NetworkAttachmentDefinition with a configuration, without what all of them have.
func definition(namespace, name, config string) string {
	return fmt.Sprintf(`
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: %[2]s, namespace: %[1]s}
spec: {config: '{"cniVersion": "1.1.0", "name": %[2]q, "type": "ovn-k8s-cni-overlay", %[3]s}'}
---
`, namespace, name, config)
}

// tenantPod is a pod of a tenant, with a number as the end of its addresses.
func tenantPod(tenant, node string, number int) string {
	return podWith(tenant, fmt.Sprintf("%s-%d", tenant, number), node,
		fmt.Sprintf(`[{"name": "own", "ips": ["10.77.0.1%[1]d", "fd77::1%[1]d"]}]`, number))
}

// vlans are a network of a VLAN outside, and one that the operator has not allowed.
const vlans = `
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: storage, namespace: shop}
spec:
  config: |
    {"cniVersion": "1.1.0", "name": "storage", "type": "ovn-k8s-cni-overlay", "topology": "localnet", "vlanID": 100,
     "physicalNetworkName": "lan", "subnets": "192.0.2.0/24,2001:db8:100::/64", "excludeSubnets": "192.0.2.0/28",
     "mtu": 1500}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: office, namespace: shop}
spec:
  config: |
    {"cniVersion": "1.1.0", "name": "office", "type": "ovn-k8s-cni-overlay", "topology": "localnet", "vlanID": 7,
     "physicalNetworkName": "lan"}
---
`

// TestNetworks checks each kind of network on one cluster.
func TestNetworks(t *testing.T) {
	c := machines.Up(t, sandbox.Options{Name: "networks-test", Nodes: 2, DualStack: true,
		MasterArgs: []string{"--physical-networks=lan:100-199"}})
	install(t, c, crd, "network-attachment-definitions.k8s.cni.cncf.io")
	t.Run("example", func(t *testing.T) { tryExample(t, c) })
	t.Run("tenants", func(t *testing.T) { tryTenants(t, c) })
	t.Run("VLAN", func(t *testing.T) { tryVLAN(t, c) })
	t.Run("combinations", func(t *testing.T) { tryCombinations(t, c) })
	machines.InSync(t, c)
	t.Run("nothing is left", func(t *testing.T) { tryRemoval(t, c) })
}

// install installs kinds that the documentation tells operators to install.
func install(t *testing.T, c *sandbox.Cluster, file string, kinds ...string) {
	t.Helper()
	machines.Kubectl(t, c, "", "apply", "-f", file)
	machines.Kubectl(t, c, "", append([]string{"wait", "--for=condition=Established", "--timeout=60s", "crd"},
		kinds...)...)
}

// apply applies a manifest, and waits until these pods of a namespace are ready.
func apply(t *testing.T, c *sandbox.Cluster, manifest, namespace string, pods ...string) {
	t.Helper()
	machines.Kubectl(t, c, manifest, "apply", "-f", "-")
	machines.Kubectl(t, c, "", append([]string{"wait", "-n", namespace, "--for=condition=Ready", "--timeout=60s", "pod"},
		pods...)...)
}

// status is an interface of a pod, as its annotation network-status has it.
type status struct {
	Interface string
	IPs       []netip.Addr
	Default   bool // has the default routes
}

func statusOf(t *testing.T, c *sandbox.Cluster, namespace, pod string) (list []status) {
	t.Helper()
	text := machines.Kubectl(t, c, "", "get", "pod", "-n", namespace, pod, "-o",
		`jsonpath={.metadata.annotations.k8s\.v1\.cni\.cncf\.io/network-status}`)
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("network-status %q of pod %s: %v", text, pod, err)
	}
	return list
}

// on is the addresses of a pod's interface, one in each family.
func on(t *testing.T, c *sandbox.Cluster, namespace, pod, iface string) []netip.Addr {
	t.Helper()
	out := granted(t, c, namespace, pod, iface)
	if len(out) != 2 {
		t.Fatalf("network-status of pod %s: %v: want two addresses of %s", pod, out, iface)
	}
	return out
}

// granted is the addresses of a pod's interface. There must be some.
func granted(t *testing.T, c *sandbox.Cluster, namespace, pod, iface string) []netip.Addr {
	t.Helper()
	list := statusOf(t, c, namespace, pod)
	i := slices.IndexFunc(list, func(s status) bool { return s.Interface == iface })
	if i < 0 || len(list[i].IPs) == 0 {
		t.Fatalf("network-status of pod %s: %v: want addresses of %s", pod, list, iface)
	}
	return list[i].IPs
}

// ask asks the server at an address from a pod, and returns the name that answers.
func ask(ctx context.Context, c *sandbox.Cluster, namespace, pod, protocol string, to netip.Addr) string {
	name, _, _ := strings.Cut(machines.AskFrom(ctx, c, namespace, pod, protocol, netip.AddrPortFrom(to, 8080)), " ")
	return name
}

// answers waits until the server at each address answers by its name, in TCP and UDP.
func answers(t *testing.T, c *sandbox.Cluster, namespace, from, want string, to []netip.Addr) {
	t.Helper()
	for _, protocol := range []string{"tcp", "udp"} {
		for _, a := range to {
			machines.Eventually(t, fmt.Sprintf("%s asks %s by %s", from, a, protocol), func(ctx context.Context) string {
				if got := ask(ctx, c, namespace, from, protocol, a); got != want {
					return fmt.Sprintf("the answer is %q, want %s's", got, want)
				}
				return ""
			})
		}
	}
}

// tryExample applies the documentation's example.
func tryExample(t *testing.T, c *sandbox.Cluster) {
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, c, string(text), "shop", "web", "db")
	for from, to := range map[string]string{"web": "db", "db": "web"} {
		for _, iface := range []string{"net1", "backend"} {
			answers(t, c, "shop", from, to, on(t, c, "shop", to, iface))
		}
	}
	if got := fmt.Sprint(on(t, c, "shop", "db", "net1")); got != "[10.99.0.50 fd99::50]" {
		t.Errorf("db has %s on net1, want what it asks for", got)
	}
	link := machines.Kubectl(t, c, "", "exec", "-n", "shop", "db", "--", "cat", "/sys/class/net/net1/address")
	if link != "02:00:00:00:00:50" {
		t.Errorf("db has the MAC %s on net1, want the one it asks for", link)
	}
}

// tryTenants has two tenants with the same addresses: each reaches its own pods, and nobody else does.
func tryTenants(t *testing.T, c *sandbox.Cluster) {
	for _, ns := range []string{"red", "green"} {
		machines.Kubectl(t, c, "", "create", "namespace", ns)
		manifest := fmt.Sprintf(tenants, ns) + tenantPod(ns, "n1", 1) + tenantPod(ns, "n2", 2) + tenantPod(ns, "n2", 3)
		apply(t, c, manifest, ns, ns+"-1", ns+"-2", ns+"-3")
	}
	for _, ns := range []string{"red", "green"} {
		for i := range 3 {
			for k := range 3 {
				to := fmt.Sprintf("%s-%d", ns, k+1)
				answers(t, c, ns, fmt.Sprintf("%s-%d", ns, i+1), to, on(t, c, ns, to, "net1"))
			}
		}
	}
	for _, a := range on(t, c, "red", "red-2", "net1") {
		for _, protocol := range []string{"tcp", "udp"} {
			if got := ask(t.Context(), c, "shop", "web", protocol, a); strings.HasPrefix(got, "red") ||
				strings.HasPrefix(got, "green") {
				t.Errorf("a pod of another network asks %s: %s answers", a, got)
			}
			for _, n := range c.Nodes {
				if got := machines.AskOn(t.Context(), n.Member, protocol, netip.AddrPortFrom(a, 8080)); strings.HasPrefix(got,
					"red") || strings.HasPrefix(got, "green") {
					t.Errorf("node %s asks %s: %s answers", n.Spec.Name, a, got)
				}
			}
		}
	}
}

// tryVLAN joins pods to a VLAN of a network outside, to which a host is joined by an access port on one node.
func tryVLAN(t *testing.T, c *sandbox.Cluster) {
	cable(t, c)
	n1, n2 := c.Nodes[0], c.Nodes[1]
	mapped := []string{"--bridge-mappings", "physnet:br-phys,lan:br-lan"}
	machines.RestartAgent(t, c, n1, mapped...)
	apply(t, c, vlans+podWith("shop", "office", "n1", "office")+podWith("shop", "disk-1", "n1", "storage")+
		podWith("shop", "disk-2", "n2", "storage"), "shop", "disk-1")
	waits(t, c, "disk-2", "this node has no bridge for physical network lan")
	waits(t, c, "office", "VLAN 7 of physical network")
	machines.RestartAgent(t, c, n2, mapped...)
	machines.Kubectl(t, c, "", "wait", "-n", "shop", "--for=condition=Ready", "--timeout=120s", "pod", "disk-2")
	for from, to := range map[string]string{"disk-1": "disk-2", "disk-2": "disk-1"} {
		answers(t, c, "shop", from, to, on(t, c, "shop", to, "net1"))
	}
	// The host outside is in the VLAN, by a port of its own; another is in another VLAN.
	for tag, ends := range map[string][2]string{"100": {"192.0.2.3/24", "2001:db8:100::f3/64"},
		"101": {"192.0.2.4/24", "2001:db8:100::f4/64"}} {
		defer hostIn(t, n2, tag, ends)()
	}
	for _, a := range on(t, c, "shop", "disk-1", "net1") {
		to := netip.AddrPortFrom(a, 8080)
		hostAsks(t, c, n2, to, "disk-1")
		if got := onHost(n2, "host101").ask(t.Context(), c, "tcp", to); !answered(false)(got) {
			t.Errorf("a host in another VLAN asks %s: %s", to, got)
		}
	}
	serveOn(t, n2, "host100")
	host := []netip.Addr{netip.MustParseAddr("192.0.2.3"), netip.MustParseAddr("2001:db8:100::f3")}
	t.Run("policies", func(t *testing.T) { tryVLANPolicies(t, c, onHost(n2, "host100"), host) })
	t.Run("virtual machines move", func(t *testing.T) { tryMachinesInVLAN(t, c, onHost(n2, "host100"), host) })
	t.Run("another VLAN", func(t *testing.T) { tryOtherVLAN(t, c, n2, host) })
}

// hostIn adds a host called host<tag> to a VLAN, by a port of a node's bridge. The result removes it.
func hostIn(t *testing.T, n *node.Node, tag string, addresses [2]string) (remove func()) {
	t.Helper()
	port := "host" + tag
	machines.Run(t, n, "ovs-vsctl", "add-port", "br-lan", port, "tag="+tag, "--", "set", "Interface", port,
		"type=internal")
	machines.Run(t, n, "ip", "netns", "add", port)
	machines.Run(t, n, "ip", "link", "set", port, "netns", port)
	for _, a := range addresses {
		machines.Run(t, n, "ip", "-n", port, "addr", "add", a, "dev", port, "nodad")
	}
	machines.Run(t, n, "ip", "-n", port, "link", "set", port, "up")
	machines.Run(t, n, "ip", "-n", port, "link", "set", "lo", "up") // without ::1, Go's servers take IPv6 for missing
	return func() { machines.Run(t, n, "ip", "netns", "del", port) }
}

// cable joins bridges br-lan of two nodes by a cable.
func cable(t *testing.T, c *sandbox.Cluster) {
	t.Helper()
	args := []string{"link", "add", "lan0", "netns", fmt.Sprint(c.Nodes[0].PID()), "type", "veth", "peer", "name", "lan0",
		"netns", fmt.Sprint(c.Nodes[1].PID())}
	if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
	for _, n := range c.Nodes {
		datapath := machines.Run(t, n, "ovs-vsctl", "get", "Bridge", "br-int", "datapath_type")
		machines.Run(t, n, "ovs-vsctl", "add-br", "br-lan", "--", "set", "Bridge", "br-lan", "datapath_type="+datapath, "--",
			"add-port", "br-lan", "lan0")
		machines.Run(t, n, "ip", "link", "set", "lan0", "up")
	}
}

// waits checks that a pod has not started, and that an Event of it says why.
func waits(t *testing.T, c *sandbox.Cluster, pod, why string) {
	t.Helper()
	waitsIn(t, c, "shop", pod, why)
}

// waitsIn is the same in another namespace than the example's.
func waitsIn(t *testing.T, c *sandbox.Cluster, namespace, pod, why string) {
	t.Helper()
	machines.Eventually(t, "Events of "+pod, func(ctx context.Context) string {
		out, err := c.Kubectl(ctx, "get", "events", "-n", namespace, "--field-selector", "involvedObject.name="+pod).Output()
		if err != nil || !strings.Contains(string(out), why) {
			return fmt.Sprintf("%v: %s: want %q", err, out, why)
		}
		return ""
	})
	if phase := machines.Kubectl(t, c, "", "get", "pod", "-n", namespace, pod, "-o", "jsonpath={.status.phase}"); phase !=
		"Pending" {
		t.Errorf("pod %s is %s, want Pending", pod, phase)
	}
}

// tryRemoval deletes the pods and the definitions. Nothing of them is left, on the nodes and in the database.
func tryRemoval(t *testing.T, c *sandbox.Cluster) {
	for _, ns := range []string{"shop", "red", "green", "lab"} {
		machines.Kubectl(t, c, "", "delete", "pod", "-n", ns, "--all", "--timeout=60s")
		machines.Kubectl(t, c, "", "delete", "net-attach-def", "-n", ns, "--all")
	}
	nothingLeft(t, c, `(shop|red|green|lab)\.`)
}

// nothingLeft checks that the database has no switch or router of a name that matches, and no node a further interface.
func nothingLeft(t *testing.T, c *sandbox.Cluster, names string) {
	t.Helper()
	machines.InSync(t, c)
	networkOf := regexp.MustCompile(names)
	for _, command := range []string{"ls-list", "lr-list"} {
		out, err := c.NBCtl(t.Context(), command)
		if err != nil || networkOf.MatchString(out) {
			t.Errorf("ovn-nbctl %s: %s, %v: want nothing of the networks", command, out, err)
		}
	}
	for _, n := range c.Nodes {
		machines.Eventually(t, "ports of "+n.Spec.Name, func(ctx context.Context) string {
			out, err := n.Run(ctx, "ovs-vsctl", "--bare", "--columns=external_ids", "find", "Interface",
				`external_ids:sandbox!=""`)
			if err != nil || strings.Contains(out, "net1") || strings.Contains(out, "backend") {
				return fmt.Sprintf("%s, %v: want none of the pods", out, err)
			}
			return ""
		})
	}
}

// hostAsks waits until a pod answers the host in the VLAN 100, which hostIn has made on a node.
func hostAsks(t *testing.T, c *sandbox.Cluster, n *node.Node, to netip.AddrPort, pod string) {
	t.Helper()
	machines.Eventually(t, fmt.Sprintf("the host in the VLAN asks %s", to), func(ctx context.Context) string {
		if got := onHost(n, "host100").ask(ctx, c, "tcp", to); !strings.HasPrefix(got, pod+" ") {
			return "got " + got
		}
		return ""
	})
}
