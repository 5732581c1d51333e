package networks

import (
	"context"
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// victim is a pod of a primary network on n1.
type victim struct{ network, namespace, pod string }

// victims has a pod of each network: of one switch, the same with other addresses of its router, of a switch for each
// node, and of one that namespaces share.
func victims() []victim {
	return []victim{{"red.own", "red", "red-1"}, {"green.own", "green", "green-1"}, {"blue.own", "blue", "blue-1"},
		{".team", "amber", "amber-1"}}
}

// tryEntering sends packets to a pod of each network from a pod of the cluster's own network, from a node, from the
// outside, and from a pod of each other network. The pod's interfaces must see none of them, also where the sender
// knows the way: a route by way of the exit.
func tryEntering(t *testing.T, c *sandbox.Cluster) {
	n1 := c.Nodes[0]
	machines.Kubectl(t, c, probedPod("default", "plain", "n1", ""), "apply", "-f", "-")
	machines.Kubectl(t, c, "", "wait", "--for=condition=Ready", "--timeout=60s", "pod", "plain")
	plain := machines.PodNamespace(t, n1, "default", "plain")
	defer func() { _ = plain.Close() }()
	defer machines.Run(t, n1, "ip", "route", "del", "10.77.0.0/16")
	defer machines.Run(t, n1, "ip", "-6", "route", "del", "fd77::/48")
	for _, v := range victims() {
		exit := exitOf(t, c, v.network, "n1")
		for i, subnet := range []string{"10.77.0.0/16", "fd77::/48"} {
			lead(t, plain, subnet, exit[i])
			machines.Run(t, n1, "ip", "route", "replace", subnet, "via", exit[i].String(), "dev", "k8s-n1")
		}
		if n := attack(t, c, v); n > 0 {
			t.Errorf("%s got %d packets from others, want none", v.pod, n)
		}
		// Without the guard they arrive: so these packets do take the way that it closes.
		router, first := "GR_"+v.network+"_n1", "2000"
		if _, err := c.NBCtl(t.Context(), "lr-policy-add", router, first, "ip", "allow"); err != nil {
			t.Fatal(err)
		}
		machines.Eventually(t, "packets to "+v.pod+" without the guard", func(context.Context) string {
			if attack(t, c, v) == 0 {
				return "no packet arrives, want some"
			}
			return ""
		})
		if _, err := c.NBCtl(t.Context(), "lr-policy-del", router, first, "ip"); err != nil {
			t.Fatal(err)
		}
	}
}

// attack has all others send packets to a pod, and counts those that arrive.
func attack(t *testing.T, c *sandbox.Cluster, v victim) (arrived int) {
	t.Helper()
	n1 := c.Nodes[0]
	ns := machines.PodNamespace(t, n1, v.namespace, v.pod)
	defer func() { _ = ns.Close() }()
	var counts []func() int
	for _, link := range []string{"eth0", "ovn-udn1"} {
		counts = append(counts, countPackets(t, ns, link))
	}
	inside, eth0 := on(t, c, v.namespace, v.pod, "ovn-udn1"), on(t, c, v.namespace, v.pod, "eth0")
	from := []client{inPod("default", "plain"), onMachine("outside", c.Outside)}
	for _, other := range victims() {
		if other != v {
			from = append(from, inPod(other.namespace, other.pod))
		}
	}
	var asks []func() string
	for k, a := range append(inside, eth0...) {
		to := netip.AddrPortFrom(a, 7777) // nobody else uses the port
		protocol := []string{"tcp", "udp", "udp", "tcp"}[k]
		senders := from
		if k < len(inside) { // the node itself may probe eth0
			senders = append([]client{onMachine("n1", n1.Member)}, from...)
		}
		for _, who := range senders {
			asks = append(asks, func() string { return who.ask(t.Context(), c, protocol, to) })
		}
	}
	_ = machines.AtOnce(asks...)
	for _, count := range counts {
		arrived += count()
	}
	return arrived
}
