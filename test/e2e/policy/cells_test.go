package policy

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// label is a rule's name as part of an object's name.
func label(rule string) string {
	return strings.Trim(regexp.MustCompile("[^a-z]+").ReplaceAllString(strings.ToLower(rule), "-"), "-")
}

// peerPod is a pod that no policy applies to: a client of those with policies, and a server for them.
type peerPod struct {
	namespace, name, node, role string
	row                         string
}

func peerPods() []peerPod {
	return []peerPod{
		{shop, "web-home", home, "web", "a pod of the namespace, same node"},
		{shop, "web-away", away, "web", "a pod of the namespace, other node"},
		{shop, "plain-away", away, "", "the same without the label"},
		{friendly, "web-home", home, "web", "a pod of the other namespace, same node"},
		{friendly, "plain-away", away, "", "the same without the label, other node"},
		{strange, "web-home", home, "web", "a pod of a third namespace, same node"},
		{strange, "web-away", away, "web", "a pod of a third namespace, other node"},
	}
}

func (p peerPod) end() end { return end{pod: true, namespace: p.namespace, role: p.role, node: p.node} }

// way is a kind of address of a server.
type way struct {
	name string
	node string                                                 // whose node port it is, "" for none
	at   func(protocol string, port int) (all []netip.AddrPort) // of both families
}

func plain(addrs []netip.Addr) func(string, int) []netip.AddrPort {
	return func(_ string, port int) (all []netip.AddrPort) {
		for _, a := range addrs {
			all = append(all, netip.AddrPortFrom(a, uint16(port)))
		}
		return all
	}
}

func (b *bed) nodePort(node string, s service) way {
	return way{node + "'s node port", node, func(protocol string, port int) (all []netip.AddrPort) {
		for _, a := range b.nodes[node] {
			all = append(all, netip.AddrPortFrom(a, s.nodePorts[place(protocol, port)]))
		}
		return all
	}}
}

// outside lists the addresses of the host outside.
func (b *bed) outside() (out []netip.Addr) {
	for _, p := range (underlay.Families{DualStack: true}).Outside() {
		out = append(out, p.Addr())
	}
	return out
}

// questions are the cells of every protocol, family and port.
func questions(c cell, w way, list []string, want func(port int) bool) (out []*cell) {
	for _, protocol := range list {
		for _, port := range []int{lowPort, highPort} {
			for _, to := range w.at(protocol, port) {
				one := c
				one.protocol, one.port, one.to, one.want = protocol, port, to, want(port)
				out = append(out, &one)
			}
		}
	}
	return out
}

// column is a pod with policies, and what these allow in one direction, in the words of the API.
type column struct {
	name     string
	pod      string
	allowed  func(e end, port int) bool
	itself   func(port int) bool // it reaches itself through a service
	nodePort bool                // egress: it reaches a pod through a node port
}

// cells are the questions of both directions, over these protocols.
func (b *bed) cells(protocols []string, served map[string]service, in, out []column) []*cell {
	return slices.Concat(b.ingressCells(protocols, served, in), b.egressCells(protocols, served, out))
}

// ingressCells ask the servers of the policies.
func (b *bed) ingressCells(list []string, served map[string]service, columns []column) (out []*cell) {
	const table = "ingress; client, and how it asks"
	names := []string{"its address", "its ClusterIP", "the node port of its node", "the node port of another node"}
	for _, r := range columns {
		s := served[r.pod]
		ways := []way{
			{"", "", plain(b.pods[shop+"/"+r.pod])}, {"", "", plain(s.clusterIPs)}, b.nodePort(home, s), b.nodePort(away, s),
		}
		askAll := func(a machines.Asker, row string, own func(way) end, from int) {
			for i, w := range ways[from:] {
				c := cell{table: table, row: row + ": " + names[from+i], column: r.name, asks: a}
				out = append(out, questions(c, w, list, func(port int) bool { return r.allowed(own(w), port) })...)
			}
		}
		for _, p := range peerPods() {
			askAll(b.inPod(p.namespace, p.name), p.row, func(w way) end {
				if w.node != "" {
					return end{node: w.node, forwarded: true}
				}
				return p.end()
			}, 0)
		}
		for _, n := range b.Nodes {
			row := map[string]string{home: "the server's own node", away: "another node"}[n.Spec.Name]
			askAll(machines.On(n.Member), row, func(w way) end {
				if w.node != "" && w.node != n.Spec.Name {
					return end{node: w.node, forwarded: true}
				}
				return end{node: n.Spec.Name}
			}, 0)
		}
		askAll(machines.On(b.Outside), "outside", func(w way) end { return end{node: w.node, forwarded: true} }, 2)
		itself := cell{table: table, row: "the server itself: its ClusterIP", column: r.name, asks: b.inPod(shop, r.pod)}
		out = append(out, questions(itself, ways[1], list, r.itself)...)
	}
	return out
}

// egressCells ask from the pods of the policies.
func (b *bed) egressCells(list []string, served map[string]service, columns []column) (out []*cell) {
	const table = "egress; server, and how it is asked"
	for _, r := range columns {
		ask := func(row string, w way, allowed func(port int) bool) {
			c := cell{table: table, row: row + ": " + w.name, column: r.name, asks: b.inPod(shop, r.pod)}
			out = append(out, questions(c, w, list, allowed)...)
		}
		by := func(e end) func(int) bool { return func(port int) bool { return r.allowed(e, port) } }
		for _, p := range peerPods() {
			ask(p.row, way{"its address", "", plain(b.pods[p.namespace+"/"+p.name])}, by(p.end()))
		}
		for _, p := range peerPods()[:3] {
			ask(p.row, way{"its ClusterIP", "", plain(served[p.name].clusterIPs)}, by(p.end()))
		}
		management := func(node string) way { return way{"the management port's address", "", plain(b.links[node])} }
		own := func(node string) way { return way{"its own address", "", plain(b.nodes[node])} }
		ask("the client's own node", management(home), by(end{node: home}))
		ask("the client's own node", own(home), by(end{node: home, own: true}))
		for _, node := range []string{home, away} {
			through := b.nodePort(node, served["plain-away"])
			through.name = "the node port of " + map[string]string{home: "the client's own node", away: "another node"}[node]
			ask("a pod", through, func(int) bool { return r.nodePort })
		}
		ask("another node", management(away), by(end{node: away}))
		ask("another node", own(away), by(end{node: away, own: true, outside: true}))
		ask("outside", way{"its address", "", plain(b.outside())}, by(end{outside: true}))
		ask("the client itself", way{"its ClusterIP", "", plain(served[r.pod].clusterIPs)}, r.itself)
	}
	return out
}

// world makes the pods, their services and the policies of rules, and starts servers on the hosts, unless they are
// there.
func (b *bed) world(t *testing.T) map[string]service {
	t.Helper()
	if b.served != nil {
		return b.served
	}
	served := map[string]service{}
	for _, p := range peerPods() {
		labels := map[string]string{"pod": p.name}
		if p.role != "" {
			labels["role"] = p.role
		}
		b.makePod(t, serverPod(p.namespace, p.name, p.node, labels))
	}
	for _, p := range peerPods()[:3] {
		served[p.name] = b.makeService(t, shop, p.name, map[string]string{"pod": p.name})
	}
	b.makeRules(t, rules(), served)
	for _, p := range peerPods() {
		b.awaitPod(t, p.namespace, p.name)
	}
	b.serveOnHosts(t)
	b.served = served
	return served
}

// makeRules makes the policies of rules, and the pods and services of their columns. It adds the services to served.
func (b *bed) makeRules(t *testing.T, rules []rule, served map[string]service) {
	t.Helper()
	all, ofHome := b.ranges(t)
	for _, r := range rules {
		in, out := r.into(all, ofHome), r.outOf(all, ofHome)
		for _, p := range []string{in.Name, out.Name} {
			b.makePod(t, serverPod(shop, p, home, map[string]string{"case": p}))
			served[p] = b.makeService(t, shop, p, map[string]string{"case": p})
		}
		if r.absent {
			continue
		}
		for _, p := range []*networkingv1.NetworkPolicy{in, out} {
			_, err := b.client.NetworkingV1().NetworkPolicies(shop).Create(t.Context(), p, metav1.CreateOptions{})
			must(t, err)
		}
	}
	for _, r := range rules {
		b.awaitPod(t, shop, "in-"+label(r.name))
		b.awaitPod(t, shop, "out-"+label(r.name))
	}
}

// serveOnHosts starts servers on the machines, which are not pods.
func (b *bed) serveOnHosts(t *testing.T) {
	t.Helper()
	hosts := map[*member.Member][]string{b.Outside: {"8081"}}
	for _, n := range b.Nodes {
		hosts[n.Member] = []string{"8080", "8081"}
	}
	for m, ports := range hosts {
		for _, port := range ports {
			server := member.Service{Name: "echo-" + port, Argv: []string{machines.Echo, "serve", port}}
			must(t, m.StartService(t.Context(), server))
		}
	}
}
