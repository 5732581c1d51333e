package networks

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// moving is two networks in the VLAN of the example, and a claim of addresses in the first one. The other one has no
// subnets.
func moving() string {
	const inVLAN = `"topology": "localnet", "vlanID": 100, "physicalNetworkName": "lan"`
	return definition("shop", "moving", inVLAN+`, "subnets": "192.0.2.0/24,2001:db8:100::/64", `+
		`"excludeSubnets": "192.0.2.0/25,2001:db8:100::/112", "allowPersistentIPs": true`) +
		definition("shop", "bare", inVLAN) + `
apiVersion: k8s.cni.cncf.io/v1alpha1
kind: IPAMClaim
metadata: {name: moving, namespace: shop}
spec: {network: moving, interface: net1}
---
`
}

// tryMachinesInVLAN has virtual machines move from node to node in the VLAN, one that has a claim, and one that chooses
// its addresses in a network without subnets. Pods stand for the machines. A host outside reaches each of them where it
// runs.
func tryMachinesInVLAN(t *testing.T, c *sandbox.Cluster, host client, hostAddrs []netip.Addr) {
	install(t, c, claimKind, "ipamclaims.k8s.cni.cncf.io")
	machines.Kubectl(t, c, moving(), "apply", "-f", "-")
	for machine, networks := range map[string]string{
		"claimed": `[{"name": "moving", "ipam-claim-reference": "moving"}]`,
		"chosen":  `[{"name": "bare", "mac": "02:00:c0:00:02:4d", "ips": ["192.0.2.77/24", "2001:db8:100::4d/64"]}]`,
	} {
		t.Run(machine, func(t *testing.T) { tryMachineInVLAN(t, c, machine, networks, host, hostAddrs) })
	}
}

func tryMachineInVLAN(t *testing.T, c *sandbox.Cluster, machine, networks string, host client, hostAddrs []netip.Addr) {
	first, second := machine+"-1", machine+"-2"
	start := func(pod, node string) []netip.Addr {
		apply(t, c, strings.Replace(podWith("shop", pod, node, networks), "annotations:",
			"labels: {vm.kubevirt.io/name: "+machine+"}, annotations:", 1), "shop", pod)
		return on(t, c, "shop", pod, "net1")
	}
	has := start(first, "n1")
	// A machine that has moved sends, and the bridges outside learn where it is.
	runsIn := func(pod string, from ...client) {
		t.Helper()
		machines.Eventually(t, "the host reaches "+pod, func(ctx context.Context) string {
			if wrong := everyWay(ctx, c, from, at(hostAddrs, 8080), answered(true)); wrong != "" {
				return wrong
			}
			return everyWay(ctx, c, []client{host}, at(has, 8080), isFrom(pod+" ", true))
		})
	}
	runsIn(first)
	if now := start(second, "n2"); fmt.Sprint(now) != fmt.Sprint(has) {
		t.Errorf("the second pod has %v, want %v, which the first one has", now, has)
	}
	standsBy := func(pod string) {
		t.Helper()
		machines.Eventually(t, "nobody answers "+pod, func(ctx context.Context) string {
			return everyWay(ctx, c, []client{inPod("shop", pod)}, at(hostAddrs, 8080), answered(false))
		})
	}
	standsBy(second)
	runsIn(first)
	machines.Kubectl(t, c, "", "annotate", "pod", "-n", "shop", second, arrived)
	runsIn(second, inPod("shop", second))
	standsBy(first)
	runsIn(second)
	machines.Kubectl(t, c, "", "delete", "pod", "-n", "shop", first, "--timeout=60s")
	runsIn(second)
	machines.Kubectl(t, c, "", "delete", "pod", "-n", "shop", second, "--timeout=60s")
	// The machine ended. It starts anew on the other node.
	third := machine + "-3"
	if now := start(third, "n1"); fmt.Sprint(now) != fmt.Sprint(has) {
		t.Errorf("the machine that starts anew has %v, want %v", now, has)
	}
	runsIn(third, inPod("shop", third))
	machines.Kubectl(t, c, "", "delete", "pod", "-n", "shop", third, "--timeout=60s")
}
