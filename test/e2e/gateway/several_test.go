package gateway

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// pod is the manifest of a pod on a node.
func pod(name, on string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: echo, image: "localhost/echo:1", imagePullPolicy: IfNotPresent}]
---
`, name, on)
}

// sources asks the host outside repeatedly from a pod, each time with a new connection, and returns the source
// addresses that it saw; "" if there was no answer.
func (b bed) sources(ctx context.Context, pod, protocol string, to netip.AddrPort, times int) map[string]int {
	out, _ := machines.InPod(b.Cluster, "default", pod).Run(ctx, "", "ask", protocol, to.String(), fmt.Sprint(times), "1s")
	seen := map[string]int{}
	for line := range strings.Lines(out) {
		who, where, _ := strings.Cut(strings.TrimSpace(line), " ")
		if from, err := netip.ParseAddrPort(where); who == "outside" && err == nil {
			seen[from.Addr().String()]++
		} else {
			seen[""]++
		}
	}
	return seen
}

// awaitSpread waits until connections of a pod use all of these nodes and no others, in both families, and all are
// answered. Open vSwitch includes the ports in the hash for TCP and SCTP; for UDP, all packets of a pod to one address
// use the same gateway.
func (b bed) awaitSpread(limit time.Duration, pod string, through ...*node.Node) {
	b.t.Helper()
	const times = 24 // the chance that one of two gateways is never chosen is 2^-23
	for i, outside := range families().Outside() {
		for _, protocol := range machines.Protocols(b.t) {
			to := netip.AddrPortFrom(outside.Addr(), 8080)
			machines.Within(b.t, limit, fmt.Sprintf("pod %s reaches %s over %s through %d gateways", pod, to, protocol,
				len(through)), func(ctx context.Context) string {
				seen := b.sources(ctx, pod, protocol, to, times)
				answered, taken := 0, 0
				for _, n := range through {
					if got := seen[addrs(n)[i].Addr().String()]; got > 0 {
						answered, taken = answered+got, taken+1
					}
				}
				if answered != times || protocol != "udp" && taken != len(through) {
					return fmt.Sprintf("seen from %v", seen)
				}
				return ""
			})
		}
	}
}

// fault breaks a node and repairs it.
type fault struct {
	name        string
	do, undo    func(t *testing.T, b bed, n *node.Node)
	why         string // of the Event
	ownGoOn     bool   // the node's own pods are not affected
	doctorKnows bool
	sooner      bool // earlier than the node controller, which waits 50 seconds
}

func faults() []fault {
	return []fault{
		{"ovn-controller is killed, or hangs in a pod", func(t *testing.T, b bed, n *node.Node) { b.halt(t, n) },
			func(t *testing.T, b bed, n *node.Node) { b.resume(t, n) }, "ovn-controller does not answer", true, true, false},
		{"ovs-vswitchd is killed, and with it the network of the node", func(t *testing.T, _ bed, n *node.Node) {
			monitor := service(t, n, node.VSwitchd)
			machines.Run(t, n, "sh", "-c", fmt.Sprintf("kill -9 %d $(cat /run/openvswitch/ovs-vswitchd.pid)", monitor.PID))
		}, func(t *testing.T, _ bed, n *node.Node) {
			restart(t, n, node.VSwitchd)
		}, "the node is not heard of", false, false, true},
		{"the node's cable is pulled", func(t *testing.T, b bed, n *node.Node) { b.plug(t, n, false) },
			func(t *testing.T, b bed, n *node.Node) { b.plug(t, n, true) }, "the node is not heard of", false, false, true},
	}
}

func service(t *testing.T, n *node.Node, name string) member.ServiceStatus {
	t.Helper()
	all, err := n.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("%s has no service %s", n.Spec.Name, name)
	return member.ServiceStatus{}
}

// halt has the ovn-controller of a node answer nobody, until resume.
func (b bed) halt(t *testing.T, n *node.Node) {
	t.Helper()
	if err := b.Halt(t.Context(), n.Spec.Name+"/"+node.Controller); err != nil {
		t.Fatal(err)
	}
}

func (b bed) resume(t *testing.T, n *node.Node) {
	t.Helper()
	if err := b.Resume(t.Context(), n.Spec.Name+"/"+node.Controller); err != nil {
		t.Fatal(err)
	}
}

func restart(t *testing.T, n *node.Node, name string) {
	t.Helper()
	if err := n.RestartService(t.Context(), name, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// plug connects a node to the others, or disconnects it.
func (b bed) plug(t *testing.T, n *node.Node, in bool) {
	t.Helper()
	h, err := b.Control.Netlink()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	link, err := h.LinkByName("ul-" + n.Spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	set := map[bool]func(netlink.Link) error{true: h.LinkSetUp, false: h.LinkSetDown}[in]
	if err := set(link); err != nil {
		t.Fatal(err)
	}
}

// If one of several gateways fails, its pods use the others, and both when it recovers. The one that fails is n2: on a
// cluster of the chart, n1 has the databases and the master.
func TestSeveralGateways(t *testing.T) {
	b := bed{machines.Up(t, sandbox.Options{Name: "gateways", Nodes: 3, Gateways: 2, DualStack: true,
		MasterArgs: []string{"--gateway-cidrs", "172.30.0.77/32", // moves
			"--gateway-pin-cidrs", "10.244.0.0/16,fd00:10:244::/48", // pins
			"--ovn-latency-interval", "10s"}}), t}
	machines.Kubectl(b.t, b.Cluster, pod("a", "n1")+pod("b", "n2")+pod("c", "n3"), "apply", "-f", "-")
	machines.Kubectl(b.t, b.Cluster, "", "wait", "--for=condition=Ready", "pod/a", "pod/b", "pod/c", "--timeout=60s")
	n1, n2 := b.Nodes[0], b.Nodes[1]
	outside := watch(t, b.Control.Member)
	defer outside.check(t, addrs(n1)[0].Addr(), addrs(n2)[1].Addr())
	b.strays("a", "b", "c")
	b.awaitSpread(time.Minute, "c", n1, n2)
	b.awaitSpread(time.Minute, "a", n1)
	b.awaitSpread(time.Minute, "b", n2)
	b.insideIsReached("a", "b", "c")
	if !t.Run("latency", func(t *testing.T) { bed{b.Cluster, t}.ovnFollows() }) {
		return
	}
	if !t.Run("pins", func(t *testing.T) { bed{b.Cluster, t}.pins(t) }) {
		return
	}
	if !t.Run("another address, no next hop", func(t *testing.T) { bed{b.Cluster, t}.moves(t) }) {
		return
	}
	for _, f := range faults() {
		if !t.Run(f.name, func(t *testing.T) { bed{b.Cluster, t}.outlives(t, f) }) {
			return // otherwise the next fault would be mistaken
		}
	}
}

// ovnFollows checks that the master measures again and again how long ovn-northd and the ovn-controllers take to
// follow.
func (b bed) ovnFollows() {
	measured := func(part string) (n int) {
		all, err := b.Metrics(b.t.Context(), control.Master)
		if err != nil {
			b.t.Fatal(err)
		}
		for line := range strings.Lines(all) {
			if rest, ok := strings.CutPrefix(line, `northbound_ovn_latency_seconds_count{part="`+part+`"} `); ok {
				n, _ = strconv.Atoi(strings.TrimSpace(rest)) // no number is none
			}
		}
		return n
	}
	more := func(part string) {
		b.t.Helper()
		before := measured(part)
		machines.Eventually(b.t, "another measurement of "+part, func(context.Context) string {
			if measured(part) == before {
				return fmt.Sprintf("%d measurements, as before", before)
			}
			return ""
		})
	}
	more("northd")
	more("controllers")
}

// outlives breaks n2. Pods leave through n1, and through both when n2 is repaired.
func (b bed) outlives(t *testing.T, f fault) {
	n1, n2 := b.Nodes[0], b.Nodes[1]
	broken := time.Now()
	f.do(t, b, n2)
	if f.sooner {
		b.isOutSooner(n2)
		t.Logf("n2 is out of service after %v", time.Since(broken).Round(time.Second))
	}
	b.awaitSpread(time.Minute, "c", n1)
	b.awaitSpread(time.Minute, "a", n1)
	if f.ownGoOn {
		b.awaitSpread(time.Minute, "b", n2)
	}
	b.awaitEvent(n2, f.why)
	if out := b.metric(t, `northbound_gateways{family="ipv4",state="out"} 1`); out != "" {
		t.Error(out)
	}
	if f.doctorKnows {
		out, err := machines.OvnkubeOn(t.Context(), b.Cluster, n2, "doctor")
		if err == nil || !strings.Contains(out, "the gateway is out of service") {
			t.Errorf("doctor: %v\n%s", err, out)
		}
	}
	f.undo(t, b, n2)
	b.awaitSpread(time.Minute, "c", n1, n2)
	b.awaitSpread(time.Minute, "b", n2)
	machines.Eventually(t, "n2 is in service again", func(context.Context) string {
		return b.metric(t, `northbound_gateways{family="ipv6",state="out"} 0`)
	})
}

// isOutSooner waits until a gateway is out of service, and checks that the node controller has not reported it before.
func (b bed) isOutSooner(n *node.Node) {
	b.t.Helper()
	machines.Within(b.t, time.Minute, n.Spec.Name+" is out of service", func(context.Context) string {
		return b.metric(b.t, `northbound_gateways{family="ipv4",state="out"} 1`)
	})
	if ready := machines.Kubectl(b.t, b.Cluster, "", "get", "node", n.Spec.Name, "-o",
		`jsonpath={.status.conditions[?(@.type=="Ready")].status}`); ready != "True" {
		b.t.Errorf("when the gateway is out of service, its Node is Ready: %s already", ready)
	}
}

// awaitEvent waits for the Event with this reason for a node's gateway.
func (b bed) awaitEvent(n *node.Node, why string) {
	b.t.Helper()
	machines.Eventually(b.t, "an Event of the gateway: "+why, func(context.Context) string {
		events := machines.Kubectl(b.t, b.Cluster, "", "get", "events",
			"--field-selector=reason=GatewayOutOfService,involvedObject.name="+n.Spec.Name, "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(events, why) {
			return "got " + events
		}
		return ""
	})
}

// metric finds a line among the master's metrics. It returns the lines about gateways if there is no such line.
func (b bed) metric(t *testing.T, want string) string {
	t.Helper()
	all, err := b.Metrics(t.Context(), control.Master)
	if err != nil {
		t.Fatal(err)
	}
	have := ""
	for line := range strings.Lines(all) {
		if strings.TrimSpace(line) == want {
			return ""
		}
		if strings.HasPrefix(line, "northbound_gateways") {
			have += line
		}
	}
	return "want " + want + ", have\n" + have
}
