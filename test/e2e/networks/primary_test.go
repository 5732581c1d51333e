package networks

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// primaryTenant is a namespace with a primary network. All have the same subnets.
const primaryTenant = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {k8s.ovn.org/primary-user-defined-network: ""}}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: own, namespace: %[1]s}
spec:
  config: |
    {"cniVersion": "1.1.0", "name": "own", "type": "ovn-k8s-cni-overlay", "role": "primary", %[2]s}
---
`

// userTenant is the same by a UserDefinedNetwork, whose router has other addresses, and in which claims keep addresses.
const userTenant = `
apiVersion: v1
kind: Namespace
metadata: {name: green, labels: {k8s.ovn.org/primary-user-defined-network: ""}}
---
apiVersion: k8s.ovn.org/v1
kind: UserDefinedNetwork
metadata: {name: own, namespace: green}
spec:
  topology: Layer2
  layer2: {role: Primary, subnets: ["10.77.0.0/16", "fd77::/48"], joinSubnets: ["100.70.0.0/16", "fd70::/64"],
    infrastructureSubnets: ["10.77.0.0/30", "fd77::/126"], defaultGatewayIPs: ["10.77.0.2", "fd77::2"],
    ipam: {lifecycle: Persistent}}
---
`

// probedPod is a pod on a node that is ready once the kubelet reaches its server.
func probedPod(namespace, name, node, labels string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %q, namespace: %q, labels: {%s}}
spec:
  nodeName: %q
  terminationGracePeriodSeconds: 0
  containers:
    - {name: echo, image: "localhost/echo:1", imagePullPolicy: IfNotPresent, readinessProbe: {tcpSocket: {port: 8080},
       periodSeconds: 1}, livenessProbe: {tcpSocket: {port: 8080}}, startupProbe: {tcpSocket: {port: 8080},
       periodSeconds: 1}}
---
`, name, namespace, labels, node)
}

// clusterDNS stands for the cluster's DNS, and is another service of the cluster's own network.
const clusterDNS = `
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: kube-system}
spec:
  clusterIPs: [%[2]s, "%[3]s"]
  clusterIP: %[2]s
  ipFamilyPolicy: RequireDualStack
  selector: {k8s-app: kube-dns}
  ports:
    - {name: udp, port: 53, targetPort: 8080, protocol: UDP}
    - {name: tcp, port: 53, targetPort: 8080, protocol: TCP}
---
`

// ownNodePort is the node port of a service of the cluster's own network.
const ownNodePort = 30299

const ownNodePortService = `
apiVersion: v1
kind: Service
metadata: {name: outward, namespace: kube-system}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {k8s-app: kube-dns}
  ports: [{port: 53, targetPort: 8080, nodePort: %d}]
---
`

const layer2, layer3 = `"topology": "layer2", "subnets": "10.77.0.0/16,fd77::/48"`,
	`"topology": "layer3", "subnets": "10.77.0.0/16/24,fd77::/48/64"`

// TestPrimary checks primary networks: three tenants with the same subnets, one of them with a switch for each node,
// and two namespaces that share another.
func TestPrimary(t *testing.T) {
	c := machines.Up(t, sandbox.Options{Name: "primary-test", Nodes: 2, DualStack: true, Gateways: 1})
	machines.Kubectl(t, c, "", "apply", "-f", crd)
	machines.Kubectl(t, c, "", "apply", "-f", userKinds, "-f", claimKind)
	machines.Kubectl(t, c, "", "wait", "--for=condition=Established", "--timeout=60s", "crd",
		"network-attachment-definitions.k8s.cni.cncf.io", "userdefinednetworks.k8s.ovn.org",
		"clusteruserdefinednetworks.k8s.ovn.org", "ipamclaims.k8s.cni.cncf.io")
	machines.InstallClusterPolicies(t, c)
	manifest := probedPod("kube-system", "dns-1", "n1", "k8s-app: kube-dns") +
		probedPod("kube-system", "dns-2", "n2", "k8s-app: kube-dns") +
		fmt.Sprintf(clusterDNS, "kube-dns", "10.96.0.10", "fd02::a") +
		fmt.Sprintf(clusterDNS, "other", "10.96.0.11", "fd02::b") + fmt.Sprintf(ownNodePortService, ownNodePort)
	apply(t, c, manifest, "kube-system", "dns-1", "dns-2")
	tenants := map[string]string{"red": fmt.Sprintf(primaryTenant, "red", layer2), "green": userTenant,
		"blue": fmt.Sprintf(primaryTenant, "blue", layer3)}
	for ns, network := range tenants {
		manifest := network + probedPod(ns, ns+"-1", "n1", `app: web, itself: "yes"`) +
			probedPod(ns, ns+"-2", "n2", "app: web") + third(ns)
		machines.Kubectl(t, c, manifest, "apply", "-f", "-")
	}
	machines.Kubectl(t, c, sharedTenant+sharedPods(), "apply", "-f", "-")
	for _, ns := range append(slices.Collect(maps.Keys(tenants)), "amber", "violet") {
		machines.Kubectl(t, c, "", "wait", "-n", ns, "--for=condition=Ready", "--timeout=120s", "pod", "--all")
	}
	t.Run("the label stays", func(t *testing.T) { tryLabel(t, c) })
	t.Run("tenants", func(t *testing.T) { tryEachTenant(t, c) })
	t.Run("a newer network", func(t *testing.T) { tryNewerNetwork(t, c) })
	t.Run("nobody enters", func(t *testing.T) { tryEntering(t, c) })
	t.Run("nobody leaves by eth0", func(t *testing.T) { tryLeavingByEth0(t, c) })
	t.Run("management ports", func(t *testing.T) { tryManagementPorts(t, c) })
	t.Run("policies", func(t *testing.T) { tryPrimaryPolicies(t, c) })
	t.Run("open ports", func(t *testing.T) { tryOpenPorts(t, c) })
	machines.InSync(t, c)
	t.Run("the master starts again", func(t *testing.T) { tryRestart(t, c) })
	t.Run("agents start again", func(t *testing.T) { tryAgents(t, c) })
	for _, n := range c.Nodes {
		if got := machines.Run(t, n, "ovs-appctl", "coverage/read-counter", "datapath_drop_recirc_error"); got != "0" {
			t.Errorf("node %s: datapath_drop_recirc_error %s, want 0", n.Spec.Name, got)
		}
	}
	t.Run("probes", func(t *testing.T) { tryProbes(t, c, slices.Collect(maps.Keys(tenants))) })
	t.Run("chosen addresses", func(t *testing.T) { tryChosen(t, c) })
	t.Run("claims", func(t *testing.T) { tryClaims(t, c) })
	t.Run("a virtual machine moves", func(t *testing.T) { tryMachine(t, c) })
	t.Run("nothing is left", func(t *testing.T) { tryPrimaryRemoval(t, c) })
	t.Run("example", func(t *testing.T) { tryPrimaryExample(t, c) }) // its namespaces are those of two tenants
}

// tryProbes checks that the kubelet has made no container anew: its liveness probes reach the pods. It does not ask for
// readiness before its startup probes have.
func tryProbes(t *testing.T, c *sandbox.Cluster, namespaces []string) {
	for _, ns := range namespaces {
		restarts := machines.Kubectl(t, c, "", "get", "pods", "-n", ns, "-o",
			"jsonpath={.items[*].status.containerStatuses[*].restartCount}")
		if counts := strings.Fields(restarts); len(counts) < 3 || strings.Trim(restarts, "0 ") != "" {
			t.Errorf("containers of %s were made anew %q times, want 0 for each of three pods or more", ns, restarts)
		}
	}
}

// chosen is what a pod asks for in its primary network: addresses that it would not get otherwise, and a MAC.
const chosen = `[{"name":"default","namespace":"ovn-kubernetes","ips":["10.77.5.5/16","fd77::5:5/48"],` +
	`"mac":"02:00:00:00:05:05"}]`

// choosing is a probed pod with that annotation.
func choosing(namespace, name, node string) string {
	return strings.Replace(probedPod(namespace, name, node, ""), "labels:", fmt.Sprintf(
		"annotations: {v1.multus-cni.io/default-network: %q}, labels:", chosen), 1)
}

// third is the third pod of a tenant. In networks of one switch it chooses its addresses.
func third(ns string) string {
	if ns == "blue" {
		return probedPod(ns, ns+"-3", "n2", "")
	}
	return choosing(ns, ns+"-3", "n2")
}

// tryChosen checks that a pod has what it asks for. Another pod that asks for the same waits until that is gone.
func tryChosen(t *testing.T, c *sandbox.Cluster) {
	machines.Kubectl(t, c, choosing("red", "red-late", "n1"), "apply", "-f", "-")
	waitsIn(t, c, "red", "red-late", "02:00:00:00:05:05 is already the MAC of Pod red/red-3")
	machines.Kubectl(t, c, "", "delete", "pod", "-n", "red", "red-3", "--timeout=60s")
	machines.Kubectl(t, c, "", "wait", "-n", "red", "--for=condition=Ready", "--timeout=60s", "pod", "red-late")
	told := machines.Kubectl(t, c, "", "get", "pod", "-n", "green", "green-3", "-o",
		`jsonpath={.metadata.annotations.k8s\.ovn\.org/pod-networks}`)
	if !strings.Contains(told, `"gateway_ips":["10.77.0.2","fd77::2"]`) {
		t.Errorf("green-3 is told %s, want the gateways of its network", told)
	}
	for ns, pod := range map[string]string{"red": "red-late", "green": "green-3"} {
		has := on(t, c, ns, pod, "ovn-udn1")
		if got := fmt.Sprint(has); got != "[10.77.5.5 fd77::5:5]" {
			t.Errorf("%s has %s, want what it asks for", pod, got)
		}
		link := machines.Kubectl(t, c, "", "exec", "-n", ns, pod, "--", "cat", "/sys/class/net/ovn-udn1/address")
		if link != "02:00:00:00:05:05" {
			t.Errorf("%s has the MAC %s, want the one it asks for", pod, link)
		}
		for _, from := range []string{ns + "-1", ns + "-2"} {
			answers(t, c, ns, from, pod, has)
		}
	}
}

// tryEachTenant has the pods of the tenants, side by side, ask whom they are to reach, and whom not.
func tryEachTenant(t *testing.T, c *sandbox.Cluster) {
	for ns, nodePort := range map[string]int{"red": 30201, "green": 30202, "blue": 30203} {
		t.Run(ns, func(t *testing.T) {
			t.Parallel()
			t.Run("within", func(t *testing.T) { tryWithin(t, c, ns) })
			t.Run("outside", func(t *testing.T) { tryOutside(t, c, ns) })
			t.Run("services", func(t *testing.T) { tryServices(t, c, ns, nodePort) })
		})
	}
	t.Run("two namespaces", func(t *testing.T) {
		t.Parallel()
		tryPrimaryShared(t, c)
	})
}

// tryWithin has each pod of a tenant ask each other.
func tryWithin(t *testing.T, c *sandbox.Cluster, ns string) {
	for i := range 3 {
		for _, s := range statusOf(t, c, ns, fmt.Sprintf("%s-%d", ns, i+1)) {
			if s.Default != (s.Interface == "ovn-udn1") {
				t.Errorf("network-status of %s-%d: %+v, want that ovn-udn1 alone is the default", ns, i+1, s)
			}
		}
		for k := range 3 {
			to := fmt.Sprintf("%s-%d", ns, k+1)
			answers(t, c, ns, fmt.Sprintf("%s-%d", ns, i+1), to, on(t, c, ns, to, "ovn-udn1"))
		}
	}
}

// sameName asks until somebody answers who may.
func sameName(t *testing.T, c *sandbox.Cluster, ns, pod, protocol, to string, may ...string) {
	t.Helper()
	machines.Eventually(t, fmt.Sprintf("%s asks %s by %s", pod, to, protocol), func(ctx context.Context) string {
		got := machines.AskFrom(ctx, c, ns, pod, protocol, netip.MustParseAddrPort(to))
		if slices.ContainsFunc(may, func(want string) bool { return strings.Contains(got, want) }) {
			return ""
		}
		return fmt.Sprintf("%s: want one of %q", got, may)
	})
}

// tryOutside asks from a tenant's pods what they are to reach outside of their network, and what they are not.
func tryOutside(t *testing.T, c *sandbox.Cluster, ns string) {
	gateway := machines.Addresses(t, c, "node", "n1", `{.status.addresses[?(@.type=="InternalIP")].address}`)
	for i, pod := range []string{ns + "-1", ns + "-2"} {
		for _, protocol := range []string{"tcp", "udp"} {
			for k, host := range []string{"203.0.113.10", "2001:db8:30::a"} {
				to := netip.AddrPortFrom(netip.MustParseAddr(host), 8080).String()
				source := netip.AddrPortFrom(gateway[k], 0).String()
				sameName(t, c, ns, pod, protocol, to, "outside "+strings.TrimSuffix(source, "0"))
			}
			exit := exitOf(t, c, ns+".own", c.Nodes[i].Spec.Name)
			for k, ip := range []string{"10.96.0.10", "fd02::a"} {
				to := netip.AddrPortFrom(netip.MustParseAddr(ip), 53).String()
				source := strings.TrimSuffix(netip.AddrPortFrom(exit[k], 0).String(), "0")
				sameName(t, c, ns, pod, protocol, to, "dns-1 "+source, "dns-2 "+source)
			}
		}
		sameName(t, c, ns, pod, "tcp", "10.96.0.1:443", "HTTP request to an HTTPS server")
		for _, n := range c.Nodes {
			for _, a := range n.Config.Addrs {
				sameName(t, c, ns, pod, "tcp", netip.AddrPortFrom(a.Addr(), ownNodePort).String(), "dns-1 ", "dns-2 ")
			}
		}
		noAnswer(t, c, "dns-", forbidden(t, c), inPod(ns, pod))
		other := []netip.AddrPort{netip.MustParseAddrPort("10.96.0.11:53"), netip.MustParseAddrPort("[fd02::b]:53")}
		if wrong := everyWay(t.Context(), c, []client{inPod(ns, pod)}, other, answered(false)); wrong != "" {
			t.Error(wrong)
		}
	}
}

// forbidden lists addresses of pods in the cluster's own network.
func forbidden(t *testing.T, c *sandbox.Cluster) (out []netip.AddrPort) {
	t.Helper()
	for _, pod := range []string{"dns-1", "dns-2"} {
		text := machines.Kubectl(t, c, "", "get", "pod", "-n", "kube-system", pod, "-o",
			"jsonpath={.status.podIPs[*].ip}")
		for _, ip := range strings.Fields(text) {
			out = append(out, netip.AddrPortFrom(netip.MustParseAddr(ip), 8080))
		}
	}
	return out
}

// exitOf is the addresses of a network's exit on a node, as the Northbound database has them.
func exitOf(t *testing.T, c *sandbox.Cluster, network, node string) (out []netip.Addr) {
	t.Helper()
	text, err := c.NBCtl(t.Context(), "--bare", "--columns=networks", "find", "Logical_Router_Port",
		"name=rtox-GR_"+network+"_"+node)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(text) {
		out = append(out, netip.MustParsePrefix(p).Addr())
	}
	if len(out) != 2 {
		t.Fatalf("the exit of %s on %s has %q, want two addresses", network, node, text)
	}
	return out
}

// rowsOf lists the rows of exits by their UUIDs.
func rowsOf(t *testing.T, c *sandbox.Cluster) (out string) {
	t.Helper()
	for _, table := range []string{"Logical_Router", "Logical_Router_Port", "Logical_Router_Policy", "NAT",
		"Load_Balancer",
		"Logical_Router_Static_Route"} {
		text, err := c.NBCtl(t.Context(), "--bare", "--columns=_uuid", "find", table,
			`external_ids:"k8s.ovn.org/owner-type"=Exit`)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Fields(text)
		slices.Sort(lines)
		out += table + ": " + strings.Join(lines, " ") + "\n"
	}
	return out
}

// tryPrimaryRemoval deletes the tenants. Nothing of them is left in the database, and in the annotations of nodes.
func tryPrimaryRemoval(t *testing.T, c *sandbox.Cluster) {
	machines.Kubectl(t, c, "", "delete", "namespace", "red", "green", "blue", "amber", "violet", "--timeout=120s")
	machines.Kubectl(t, c, "", "delete", "clusteruserdefinednetwork", "team", "--timeout=60s")
	machines.InSync(t, c)
	for _, command := range []string{"ls-list", "lr-list"} {
		out, err := c.NBCtl(t.Context(), command)
		if err != nil || strings.Contains(out, ".own_") || strings.Contains(out, ".team_") {
			t.Errorf("ovn-nbctl %s: %s, %v: want nothing of the networks", command, out, err)
		}
	}
	out, err := c.NBCtl(t.Context(), "--bare", "--columns=name", "list", "Load_Balancer_Group")
	if err != nil || strings.Contains(out, "exit") || strings.Contains(out, ".own") ||
		strings.Contains(out, ".team") {
		t.Errorf("load balancer groups %s, %v: want none of exits and of the networks", out, err)
	}
	for _, n := range c.Nodes { // annotations are written after the rows
		machines.Eventually(t, "annotations of "+n.Spec.Name+" without networks", func(ctx context.Context) string {
			out, err := c.Kubectl(ctx, "get", "node", n.Spec.Name, "-o", "jsonpath={.metadata.annotations}").CombinedOutput()
			if text := string(out); err != nil || strings.Contains(text, ".own") || strings.Contains(text, ".team") {
				return fmt.Sprintf("%v: %s", err, out)
			}
			return ""
		})
	}
}
