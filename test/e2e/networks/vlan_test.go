package networks

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// disksPolicy is a policy about one pod in the VLAN.
const disksPolicy = `
apiVersion: k8s.cni.cncf.io/v1beta1
kind: MultiNetworkPolicy
metadata: {name: disks, namespace: shop, annotations: {k8s.v1.cni.cncf.io/policy-for: storage}}
spec: {podSelector: {matchLabels: {disk: one}}, %s}
`

// serveOn has a host answer until the test ends.
func serveOn(t *testing.T, n *node.Node, host string) {
	t.Helper()
	s := member.Service{Name: host, Argv: []string{"ip", "netns", "exec", host, machines.Echo, "serve"}}
	if err := n.StartService(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.StopService(context.Background(), host, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
}

// tryVLANPolicies has policies of a pod in the VLAN, about other pods there and a host outside.
func tryVLANPolicies(t *testing.T, c *sandbox.Cluster, host client, hostAddrs []netip.Addr) {
	install(t, c, policyCRD, "multi-networkpolicies.k8s.cni.cncf.io")
	for i, pod := range []string{"disk-1", "disk-2"} {
		machines.Kubectl(t, c, "", "label", "pod", "-n", "shop", pod, "disk="+[]string{"one", "two"}[i])
	}
	one, two, toOne := inPod("shop", "disk-1"), inPod("shop", "disk-2"), at(on(t, c, "shop", "disk-1", "net1"), 8080)
	but := fmt.Sprintf("[{ipBlock: {cidr: 192.0.2.0/24, except: [%s/32]}}, {ipBlock: {cidr: '2001:db8:100::/64', "+
		"except: ['%s/128']}}]", hostAddrs[0], hostAddrs[1])
	for _, step := range []struct {
		spec              string
		byHost, byPod, to bool // whether the host and the other pod reach the pod, and whether it reaches the host
	}{
		{"policyTypes: [Ingress]", false, false, true},
		{"ingress: [{}]", true, true, true},
		{"ingress: [{from: [{podSelector: {matchLabels: {disk: two}}}]}]", false, true, true},
		{"ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}]}]", false, true, true},
		{"ingress: [{from: " + but + "}]", false, true, true},
		{"ingress: [{from: [{podSelector: {}}], ports: [{port: 8070, endPort: 8079}]}]", false, false, true},
		{"policyTypes: [Ingress, Egress], egress: [{}]", false, false, true},
		{"policyTypes: [Egress]", true, true, false},
		{"policyTypes: [Egress], egress: [{}]", true, true, true},
		{"policyTypes: [Egress], egress: [{to: " + but + "}]", true, true, false},
	} {
		machines.Kubectl(t, c, fmt.Sprintf(disksPolicy, step.spec), "apply", "-f", "-")
		machines.Eventually(t, "in the VLAN with "+step.spec, func(ctx context.Context) string {
			return machines.AtOnce(
				func() string { return everyWay(ctx, c, []client{host}, toOne, answered(step.byHost)) },
				func() string { return everyWay(ctx, c, []client{two}, toOne, answered(step.byPod)) },
				func() string { return everyWay(ctx, c, []client{one}, at(hostAddrs, 8080), answered(step.to)) })
		})
	}
	machines.Kubectl(t, c, "", "delete", "multi-networkpolicy", "-n", "shop", "disks")
}

// tryOtherVLAN changes the definition to another VLAN and MTU. Pods reach the host in the first VLAN no more, until the
// host is in the other, too. A new pod has the new MTU.
func tryOtherVLAN(t *testing.T, c *sandbox.Cluster, n *node.Node, hostAddrs []netip.Addr) {
	changed := strings.NewReplacer(`"vlanID": 100`, `"vlanID": 101`, `"mtu": 1500`, `"mtu": 1400`).Replace(vlans)
	machines.Kubectl(t, c, changed, "apply", "-f", "-")
	reaches := func(so bool) {
		t.Helper()
		machines.Eventually(t, fmt.Sprintf("the host is reached: %v", so), func(ctx context.Context) string {
			pods := []client{inPod("shop", "disk-1"), inPod("shop", "disk-2")}
			return everyWay(ctx, c, pods, at(hostAddrs, 8080), answered(so))
		})
	}
	reaches(false)
	machines.Run(t, n, "ovs-vsctl", "set", "Port", "host100", "tag=101")
	reaches(true)
	apply(t, c, podWith("shop", "disk-3", "n1", "storage"), "shop", "disk-3")
	mtu := machines.Kubectl(t, c, "", "exec", "-n", "shop", "disk-3", "--", "cat", "/sys/class/net/net1/mtu")
	if mtu != "1400" {
		t.Errorf("a new pod has MTU %s in the network, want 1400", mtu)
	}
}
