package networks

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// macvlanPod is a pod that asks for a macvlan.
func macvlanPod(name, node, value string, privileged bool) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %q, namespace: edge, annotations: {pod.network.openshift.io/assign-macvlan: %q}}
spec:
  nodeName: %q
  terminationGracePeriodSeconds: 0
  containers:
  - {name: echo, image: "localhost/echo:1", imagePullPolicy: IfNotPresent, securityContext: {privileged: %v}}
---
`, name, value, node, privileged)
}

// tryMacvlan has pods with a macvlan on their nodes' NICs: they reach each other and a host there, past the cluster's
// own network. A pod that is not privileged does not start.
func tryMacvlan(t *testing.T, c *sandbox.Cluster) {
	machines.Kubectl(t, c, "", "create", "namespace", "edge")
	defer machines.Kubectl(t, c, "", "delete", "namespace", "edge", "--timeout=90s")
	n1, n2 := c.Nodes[0], c.Nodes[1]
	machines.Run(t, n1, "ip", "route", "add", "default", "dev", "eth0", "metric", "9000")
	defer machines.Run(t, n1, "ip", "route", "del", "default", "dev", "eth0", "metric", "9000")
	apply(t, c, macvlanPod("router-1", "n1", "true", true)+macvlanPod("router-2", "n2", "eth0", true)+
		macvlanPod("plain", "n2", "eth0", false)+macvlanPod("lost", "n2", "eth7", true), "edge", "router-1", "router-2")
	ends := map[string][]netip.Prefix{}
	for i, n := range []*node.Node{n1, n2} {
		name := fmt.Sprintf("router-%d", i+1)
		for _, text := range []string{"198.51.100.%d/24", "2001:db8:51::%d/64"} {
			ends[name] = append(ends[name], netip.MustParsePrefix(fmt.Sprintf(text, i+1)))
		}
		setMacvlan(t, n, name, ends[name])
	}
	for from, to := range map[string]string{"router-1": "router-2", "router-2": "router-1"} {
		for _, a := range ends[to] {
			answers(t, c, "edge", from, to, []netip.Addr{a.Addr()})
		}
	}
	// A host on the NICs' network reaches them, too: the machine of the control plane.
	onControl := func(argv ...string) {
		t.Helper()
		if out, err := c.Control.Run(t.Context(), argv...); err != nil {
			t.Fatalf("%v: %v: %s", argv, err, out)
		}
	}
	for _, text := range []string{"198.51.100.9/24", "2001:db8:51::9/64"} {
		onControl("ip", "addr", "add", text, "dev", underlay.Bridge, "nodad")
		defer onControl("ip", "addr", "del", text, "dev", underlay.Bridge)
	}
	for _, a := range ends["router-2"] {
		to := netip.AddrPortFrom(a.Addr(), 8080)
		machines.Eventually(t, "a host asks "+to.String(), func(ctx context.Context) string {
			if got := machines.AskOn(ctx, c.Control.Member, "tcp", to); !strings.HasPrefix(got, "router-2 ") {
				return "got " + got
			}
			return ""
		})
	}
	for pod, why := range map[string]string{"plain": "only a pod with a privileged container",
		"lost": "no such interface on the node: eth7"} {
		machines.Eventually(t, "Events of "+pod, func(ctx context.Context) string {
			out, err := c.Kubectl(ctx, "get", "events", "-n", "edge", "--field-selector", "involvedObject.name="+pod).Output()
			if err != nil || !strings.Contains(string(out), why) {
				return fmt.Sprintf("%v: %s: want %q", err, out, why)
			}
			return ""
		})
		if phase := machines.Kubectl(t, c, "", "get", "pod", "-n", "edge", pod, "-o", "jsonpath={.status.phase}"); phase !=
			"Pending" {
			t.Errorf("pod %s is %s, want Pending", pod, phase)
		}
	}
	machines.Eventually(t, "the Event of the master", func(ctx context.Context) string {
		out, err := c.Kubectl(ctx, "get", "events", "-n", "edge", "--field-selector", "reason=MacvlanRefused").Output()
		if err != nil || !strings.Contains(string(out), "pod/plain") {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
}

// setMacvlan gives the macvlan of a pod addresses, as the pod itself would. It has none before.
func setMacvlan(t *testing.T, n *node.Node, pod string, addrs []netip.Prefix) {
	t.Helper()
	ns := machines.PodNamespace(t, n, "edge", pod)
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns.NsHandle)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	link, err := h.LinkByName("macvlan0")
	if err != nil {
		t.Fatal(err)
	}
	have, err := h.AddrList(link, unix.AF_INET)
	if err != nil || len(have) != 0 || link.Type() != "macvlan" {
		t.Errorf("pod %s: macvlan0 is a %s with %v, %v: want a macvlan without addresses", pod, link.Type(), have, err)
	}
	for _, a := range addrs {
		ip := &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}
		flags := 0
		if a.Addr().Is6() {
			flags = unix.IFA_F_NODAD
		}
		if err := h.AddrAdd(link, &netlink.Addr{IPNet: ip, Flags: flags}); err != nil {
			t.Fatal(err)
		}
	}
}
