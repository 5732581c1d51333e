package networks

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// combination is a network that two pods on two nodes are in.
type combination struct {
	name, config string
	asks         string // what the pods ask for besides, with %d for the number of the pod
	sets         string // the prefix that the pods add to their interfaces themselves, with %d
	twice        bool   // the pods ask for a second interface in the network
}

// combinations are what the other subtests have no packets for. VLANs are of the physical network that tryVLAN maps.
func combinations() []combination {
	const vlan = `"topology": "localnet", "physicalNetworkName": "lan", "vlanID": `
	return []combination{
		{name: "l2six", config: `"topology": "layer2", "subnets": "fd20::/64"`},
		{name: "l3six", config: `"topology": "layer3", "subnets": "fd30::/48/64"`},
		{name: "lnsix", config: vlan + `110, "subnets": "2001:db8:110::/64"`},
		{name: "l2less", config: `"topology": "layer2", "subnets": "10.90.0.0/24", "excludeSubnets": "10.90.0.0/30"`},
		{name: "l2self", config: `"topology": "layer2"`, sets: "10.91.0.%d/24"},
		{name: "lnself", config: vlan + `111`, sets: "10.92.0.%d/24"},
		{name: "lnasked", config: vlan + `112`, asks: `, "ips": ["10.93.0.%d/24", "fd93::%[1]d/64"]`},
		{name: "l2two", config: `"topology": "layer2", "subnets": "10.94.0.0/24"`, twice: true},
		{name: "l3two", config: `"topology": "layer3", "subnets": "10.95.0.0/16/24"`, twice: true},
		{name: "lntwo", config: vlan + `113, "subnets": "10.120.0.0/24"`, twice: true},
	}
}

// interfaces are a pod's interfaces in the network.
func (n combination) interfaces() []string {
	if n.twice {
		return []string{n.name + "-a", n.name + "-b"}
	}
	return []string{n.name}
}

// tryCombinations has two pods in all these networks at once. They reach each other by each interface.
func tryCombinations(t *testing.T, c *sandbox.Cluster) {
	const namespace = "lab"
	machines.Kubectl(t, c, "", "create", "namespace", namespace)
	var manifest strings.Builder
	asked := [2][]string{}
	for _, n := range combinations() {
		manifest.WriteString(definition(namespace, n.name, n.config))
		for i := range asked {
			more := n.asks
			if more != "" {
				more = fmt.Sprintf(more, i+1)
			}
			for _, iface := range n.interfaces() {
				asked[i] = append(asked[i], fmt.Sprintf(`{"name": %q, "interface": %q%s}`, n.name, iface, more))
			}
		}
	}
	pods := []string{"lab-1", "lab-2"}
	for i, pod := range pods {
		manifest.WriteString(podWith(namespace, pod, fmt.Sprintf("n%d", i+1), "["+strings.Join(asked[i], ", ")+"]"))
	}
	t.Cleanup(func() {
		if t.Failed() {
			events, err := c.Kubectl(context.Background(), "get", "events", "-n", namespace).CombinedOutput()
			t.Logf("%v\n%s", err, events)
		}
	})
	apply(t, c, manifest.String(), namespace, pods...)
	for _, n := range combinations() {
		t.Run(n.name, func(t *testing.T) {
			if n.twice {
				tryTwice(t, c, n, namespace, pods)
				return
			}
			n.reached(t, c, namespace, pods)
		})
	}
	t.Run("agent starts again", func(t *testing.T) {
		machines.RestartAgent(t, c, c.Nodes[0])
		for _, n := range combinations() {
			if n.sets != "" {
				n.reached(t, c, namespace, pods)
			}
		}
	})
}

// reached has each of the two pods ask the other one in the network.
func (n combination) reached(t *testing.T, c *sandbox.Cluster, namespace string, pods []string) {
	t.Helper()
	var addresses [2][]netip.Addr
	for i, pod := range pods {
		addresses[i] = n.addresses(t, c, namespace, pod, i+1)
	}
	for i, pod := range pods {
		answers(t, c, namespace, pod, pods[1-i], addresses[1-i])
	}
}

// addresses are those of a pod in the network. number is the pod's.
func (n combination) addresses(t *testing.T, c *sandbox.Cluster, namespace, pod string, number int) []netip.Addr {
	t.Helper()
	if n.sets != "" {
		own := netip.MustParsePrefix(fmt.Sprintf(n.sets, number))
		inNetworkOf(t, c, namespace, pod, "ip", "addr", "replace", own.String(), "dev", n.name)
		return []netip.Addr{own.Addr()}
	}
	return granted(t, c, namespace, pod, n.name)
}

// tryTwice has pods with two interfaces in a network reach each other by the one alone, and then by the other.
func tryTwice(t *testing.T, c *sandbox.Cluster, n combination, namespace string, pods []string) {
	ifaces, dir := n.interfaces(), t.TempDir()
	for i, iface := range ifaces {
		for _, pod := range pods {
			// The kernel forgets the routes of an interface that is taken down.
			inNetworkOf(t, c, namespace, pod, "sh", "-ec", `ip link set $1 up
if [ -e $3-$1 ]; then while read route; do ip route replace $route dev $1; done < $3-$1; fi
ip -4 route show dev $2 | { grep via || true; } > $3-$2
ip link set $2 down`, "sh", iface, ifaces[1-i], filepath.Join(dir, pod))
		}
		for k, pod := range pods {
			other := pods[1-k]
			answers(t, c, namespace, pod, other, granted(t, c, namespace, other, iface))
		}
	}
}

// inNetworkOf runs a program in the network of a pod.
func inNetworkOf(t *testing.T, c *sandbox.Cluster, namespace, pod string, argv ...string) {
	t.Helper()
	cmd, err := c.PodNetworkCommand(context.WithoutCancel(t.Context()), namespace, pod, argv...)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v in the network of pod %s: %v: %s", argv, pod, err, out)
	}
}
