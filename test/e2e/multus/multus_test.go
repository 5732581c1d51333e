package multus

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// The kind of definitions, as the documentation has users install it.
const crd = "../../../dist/kubernetes/networkattachmentdefinition.yaml"

// conf is Multus's configuration on a node: what it delegates eth0 to, and as whom it reads definitions.
const conf = `{"cniVersion": "1.0.0", "name": "multus", "type": "multus",
 "kubeconfig": "/etc/cni/net.d/multus.kubeconfig",
 "clusterNetwork": "/etc/cni/net.d/10-ovn-kubernetes.conflist", "namespaceIsolation": true}`

// shop has a network of another plugin, one of OVN, and two pods in both.
const shop = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: lan, namespace: shop}
spec:
  config: |
    {"cniVersion": "1.0.0", "name": "lan", "type": "macvlan", "master": "eth0", "mode": "bridge",
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.55.0.0/24"}], [{"subnet": "fd55::/64"}]]}}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: blue, namespace: shop}
spec:
  config: |
    {"cniVersion": "1.0.0", "name": "blue", "type": "ovn-k8s-cni-overlay", "topology": "layer2",
     "subnets": "10.99.0.0/24,fd99::/64", "netAttachDefName": "shop/blue"}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, annotations: {k8s.v1.cni.cncf.io/networks: "lan, blue"}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: echo, image: "localhost/echo:1", imagePullPolicy: IfNotPresent}]
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: shop, annotations: {k8s.v1.cni.cncf.io/networks: "lan, blue"}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: echo, image: "localhost/echo:1", imagePullPolicy: IfNotPresent}]
---
`

// TestMultus has Multus, as a thin plugin, make pods' interfaces: eth0 and net2 by OVN, and net1 by the macvlan plugin.
func TestMultus(t *testing.T) {
	c := machines.Up(t, sandbox.Options{Name: "multus-test", Nodes: 1, DualStack: true})
	machines.Kubectl(t, c, "", "apply", "-f", crd)
	machines.Kubectl(t, c, "", "wait", "--for=condition=Established", "--timeout=60s", "crd",
		"network-attachment-definitions.k8s.cni.cncf.io")
	n := c.Nodes[0]
	install(t, c, n)
	machines.Kubectl(t, c, shop, "apply", "-f", "-")
	machines.Kubectl(t, c, "", "wait", "-n", "shop", "--for=condition=Ready", "--timeout=120s", "pod", "web", "db")
	for from, to := range map[string]string{"web": "db", "db": "web"} {
		for iface, network := range map[string]string{"eth0": "", "net1": "shop/lan", "net2": "shop/blue"} {
			for _, a := range addresses(t, c, to, iface, network) {
				answers(t, c, from, to, a)
			}
		}
	}
	machines.InSync(t, c)
	machines.Kubectl(t, c, "", "delete", "pod", "-n", "shop", "web", "db", "--timeout=60s")
	machines.Eventually(t, "ports of the pods", func(ctx context.Context) string {
		out, err := n.Run(ctx, "ovs-vsctl", "--bare", "--columns=external_ids", "find", "Interface",
			`external_ids:sandbox!=""`)
		if err != nil || strings.Contains(out, "shop_") {
			return fmt.Sprintf("%s, %v: want none of the pods", out, err)
		}
		return ""
	})
}

// install puts Multus before the CNI plugin of a node.
func install(t *testing.T, c *sandbox.Cluster, n *node.Node) {
	t.Helper()
	for link, target := range map[string]string{
		"multus": member.BinDir + "/multus", "ovn-k8s-cni-overlay": member.BinDir + "/ovn_cni",
		"macvlan": "/usr/lib/cni/macvlan", "host-local": "/usr/lib/cni/host-local",
	} {
		machines.Run(t, n, "test", "-x", target)
		machines.Run(t, n, "ln", "-s", target, member.CNIBinDir+"/"+link)
	}
	kubeconfig, err := os.ReadFile(c.Control.AdminKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	write := func(path string, text []byte) {
		t.Helper()
		machines.Run(t, n, "sh", "-c", `echo "$1" | base64 -d >"$0"`, path, base64.StdEncoding.EncodeToString(text))
	}
	write("/etc/cni/net.d/multus.kubeconfig", kubeconfig)
	write("/etc/cni/net.d/00-multus.conf", []byte(conf))
}

// addresses is what the annotation network-status says of a pod's interface. Multus writes it.
func addresses(t *testing.T, c *sandbox.Cluster, pod, iface, network string) (out []netip.Addr) {
	t.Helper()
	machines.Eventually(t, "addresses of "+iface+" of pod "+pod, func(ctx context.Context) string {
		text, err := c.Kubectl(ctx, "get", "pod", "-n", "shop", pod, "-o",
			`jsonpath={.metadata.annotations.k8s\.v1\.cni\.cncf\.io/network-status}`).Output()
		var list []struct {
			Name, Interface string
			IPs             []netip.Addr
		}
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		for _, i := range list {
			if i.Interface == iface && (network == "" || i.Name == network) && len(i.IPs) == 2 {
				out = i.IPs
				return ""
			}
		}
		return fmt.Sprintf("%v: %s: want two of %s", err, text, network)
	})
	return out
}

// answers waits until a pod gets the answer of another, by TCP and UDP.
func answers(t *testing.T, c *sandbox.Cluster, from, to string, at netip.Addr) {
	t.Helper()
	for _, protocol := range []string{"tcp", "udp"} {
		machines.Eventually(t, fmt.Sprintf("%s asks %s by %s", from, at, protocol), func(ctx context.Context) string {
			out, err := c.Kubectl(ctx, "exec", "-n", "shop", from, "--", machines.EchoInPod, "ask", protocol,
				netip.AddrPortFrom(at, 8080).String(), "1", "1s").CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), to+" ") {
				return fmt.Sprintf("%v: %s: want an answer of %s", err, out, to)
			}
			return ""
		})
	}
}
