package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// asker runs the echo client in a pod or on a node.
type asker struct {
	what string
	run  func(args ...string) (string, error)
}

func fromPod(t *testing.T, p pod) asker {
	return asker{"pod " + p.Name, func(args ...string) (string, error) {
		return sandbox(t.Context(), append([]string{"exec", p.Name, "--", "/bin/echo-server"}, args...)...)
	}}
}

func fromNode(t *testing.T, node string) asker {
	return asker{"node " + node, func(args ...string) (string, error) {
		return sandbox(t.Context(), append([]string{"node", node, "--", "/opt/northbound/bin/echo"}, args...)...)
	}}
}

// reaches asks target until all of want have answered. An answer from another server fails at once.
func (a asker) reaches(t *testing.T, protocol, target string, want []string) {
	t.Helper()
	seen := map[string]bool{}
	eventually(t, fmt.Sprintf("%s to %s %s", a.what, protocol, target), func() string {
		out, err := a.run("ask", protocol, target, "20", "2s")
		for line := range strings.Lines(out) {
			who, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if who == "error:" {
				continue // the first packets after a change may be lost
			}
			if !slices.Contains(want, who) {
				t.Fatalf("%s to %s %s: %q answered, want only %v", a.what, protocol, target, who, want)
			}
			seen[who] = true
		}
		if len(seen) == len(want) {
			return ""
		}
		return fmt.Sprintf("%d of %v answered (%v, %v)", len(seen), want, seen, err)
	})
}

func TestPodsOnOtherNodes(t *testing.T) {
	apply(t, deployment("ping", 3))
	ps := readyPods(t, "ping", 3)
	nodes := map[string]bool{}
	for _, p := range ps {
		nodes[p.Node] = true
		checkPort(t, p)
	}
	if len(nodes) != 3 {
		t.Fatalf("pods are on %d nodes, want 3", len(nodes))
	}
	for _, from := range ps {
		for _, to := range ps {
			for _, ip := range to.IPs {
				eventually(t, fmt.Sprintf("%s on %s pings %s on %s", from.Name, from.Node, ip, to.Node), func() string {
					out, err := sandbox(t.Context(), "exec", from.Name, "--", "ping", "-c1", "-W2", ip)
					if err != nil {
						return err.Error() + out
					}
					return ""
				})
			}
		}
		for _, ip := range from.IPs {
			for node := range nodes {
				eventually(t, fmt.Sprintf("node %s pings %s on %s", node, ip, from.Node), func() string {
					out, err := sandbox(t.Context(), "node", node, "--", "ping", "-c1", "-W2", ip)
					if err != nil {
						return err.Error() + out
					}
					return ""
				})
			}
		}
	}
}

// checkPort compares the pod's interface and its logical port with its annotation.
func checkPort(t *testing.T, p pod) {
	t.Helper()
	if len(p.IPs) != 2 {
		t.Fatalf("pod %s has addresses %v, want two", p.Name, p.IPs)
	}
	inside := must(t, "exec", p.Name, "--", "ip", "addr", "show", "eth0")
	for _, want := range append(slices.Clone(p.IPs), p.MAC) {
		if !strings.Contains(inside, want) {
			t.Errorf("eth0 of %s has no %s:\n%s", p.Name, want, inside)
		}
	}
	want := p.MAC + " " + strings.Join(p.IPs, " ")
	if got := nbctl(t, "lsp-get-addresses", "default_"+p.Name); got != want {
		t.Errorf("addresses of port default_%s: %q, want %q", p.Name, got, want)
	}
	if got := nbctl(t, "lsp-get-port-security", "default_"+p.Name); got != want {
		t.Errorf("port security of port default_%s: %q, want %q", p.Name, got, want)
	}
}

// TestClusterIP checks that a service reaches every ready endpoint and no other, also while endpoints change. It asks
// from a pod and from a node, in both families and all protocols.
func TestClusterIP(t *testing.T) {
	apply(t, deployment("web", 3)+service("web", "web"))
	ps := readyPods(t, "web", 3)
	askers := []asker{fromPod(t, ps[0]), fromNode(t, "n1")}
	check := func(want []string) {
		t.Helper()
		for _, ip := range clusterIPs(t, "web") {
			for _, protocol := range machines.Protocols(t) {
				for _, a := range askers {
					a.reaches(t, protocol, hostPort(ip, 80), want)
				}
			}
		}
	}
	check(names(ps))
	kubectl(t, "scale", "deployment", "web", "--replicas=5")
	ps = readyPods(t, "web", 5)
	settled(t, "web", ps)
	askers[0] = fromPod(t, ps[0])
	check(names(ps))
	kubectl(t, "scale", "deployment", "web", "--replicas=1")
	ps = readyPods(t, "web", 1)
	settled(t, "web", ps)
	askers[0] = fromPod(t, ps[0]) // which now reaches itself through the service
	check(names(ps))
}

func names(ps []pod) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Name)
	}
	return out
}

// settled waits until the load balancer has exactly these pods as backends.
func settled(t *testing.T, svc string, ps []pod) {
	t.Helper()
	var want []string
	for _, p := range ps {
		want = append(want, hostPort(p.IPs[0], 8080))
	}
	slices.Sort(want)
	vip := hostPort(clusterIPs(t, svc)[0], 80)
	eventually(t, "backends of "+svc, func() string {
		out := nbctl(t, "--bare", "--columns=vips", "find", "Load_Balancer", "name=Service_default/"+svc+"_TCP")
		for _, entry := range strings.Fields(out) {
			if backends, ok := strings.CutPrefix(entry, vip+"="); ok {
				got := strings.Split(backends, ",")
				slices.Sort(got)
				if slices.Equal(got, want) {
					return ""
				}
			}
		}
		return fmt.Sprintf("%q, want %v", out, want)
	})
}

// TestNoEndpoints checks that a service without endpoints refuses connections at once.
func TestNoEndpoints(t *testing.T) {
	apply(t, deployment("lonely", 1)+service("empty", "nobody"))
	p := readyPods(t, "lonely", 1)[0]
	for _, ip := range clusterIPs(t, "empty") {
		for _, a := range []asker{fromPod(t, p), fromNode(t, "n2")} {
			eventually(t, a.what+" to "+ip, func() string {
				for protocol, want := range map[string]string{"tcp": "refused", "udp": "refused", "sctp": "aborted"} {
					out, err := a.run("ask", protocol, hostPort(ip, 80), "1", "5s")
					if err == nil {
						return "somebody answered: " + out
					}
					if !strings.Contains(out+err.Error(), want) {
						return protocol + ": not refused: " + out
					}
				}
				return ""
			})
		}
	}
}

// TestDeletedPodLeavesNothing checks that a pod's port, and its interface on the node, are removed with it.
func TestDeletedPodLeavesNothing(t *testing.T) {
	apply(t, deployment("gone", 2))
	p := readyPods(t, "gone", 2)[0]
	kubectl(t, "delete", "pod", p.Name, "--wait=false")
	eventually(t, "port of the deleted pod", func() string {
		if got := nbctl(t, "--bare", "--columns=name", "find", "Logical_Switch_Port", "name=default_"+p.Name); got != "" {
			return got + " is still there"
		}
		return ""
	})
	eventually(t, "interface of the deleted pod", func() string {
		out := must(t, "node", p.Node, "--", "ovs-vsctl", "--bare", "--columns=name", "find", "Interface",
			"external_ids:iface-id=default_"+p.Name)
		if out != "" {
			return out + " is still there"
		}
		return ""
	})
}
