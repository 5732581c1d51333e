package policy

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// tenantsBornFor is how long pods of another tenant are made.
const tenantsBornFor = 10 * time.Second

// TestTenants checks which tenants reach each other, in a cluster of its own, whose master keeps tenants apart.
func TestTenants(t *testing.T) {
	b := up(t, "tenants", "--multitenant")
	for name, node := range map[string]string{"server": home, "mate": away} {
		b.makePod(t, serverPod(shop, name, node, map[string]string{"pod": name}))
	}
	for name, node := range map[string]string{"near": home, "far": away} {
		b.makePod(t, serverPod(friendly, name, node, nil))
	}
	b.makePod(t, serverPod(strange, "other", away, nil))
	s := b.makeService(t, shop, "server", map[string]string{"pod": "server"})
	for _, pod := range []string{shop + "/server", shop + "/mate", friendly + "/near", friendly + "/far",
		strange + "/other"} {
		namespace, name, _ := strings.Cut(pod, "/")
		b.awaitPod(t, namespace, name)
	}
	server := []way{{"its address", "", plain(b.pods[shop+"/server"])}, {"its ClusterIP", "", plain(s.clusterIPs)}}
	friends := []way{{"its address", "", plain(b.pods[friendly+"/far"])}}
	stranger := []way{{"its address", "", plain(b.pods[strange+"/other"])}}
	near, far := b.inPod(friendly, "near"), b.inPod(friendly, "far")
	mate, other := b.inPod(shop, "mate"), b.inPod(strange, "other")
	atHome, err := b.Node(home)
	must(t, err)
	atAway, err := b.Node(away)
	must(t, err)

	b.reach(t, "another tenant", false, server, near, far, other)
	b.reach(t, "another tenant, the other way", false, friends, mate)
	b.reach(t, "the own tenant, and nodes", true, server, mate, machines.On(atHome.Member), machines.On(atAway.Member))
	b.tenant(t, "join", friendly, "--to", shop)
	b.reach(t, "a joined namespace", true, server, near, far)
	b.reach(t, "a joined namespace, the other way", true, friends, mate)
	b.reach(t, "a third tenant", false, server, other)

	inside := b.inside(t, friendly, "far", away)
	var udp, talks []*talk
	for _, ip := range b.pods[shop+"/server"] {
		to := netip.AddrPortFrom(ip, lowPort)
		udp = append(udp, overUDP(t, inside, to))
		talks = append(talks, overTCP(t, inside, to))
	}
	talks = append(talks, udp...)
	b.during(t, talks, func() { b.tenant(t, "join", strange, "--to", shop) }, func() { b.tenant(t, "isolate", strange) })
	b.tenant(t, "isolate", friendly)
	cut(t, talks)
	b.reach(t, "an isolated namespace", false, server, near, far)
	b.tenant(t, "join", friendly, "--to", shop)
	b.during(t, udp, func() {}) // the same connections go on: nothing is left of the cut
	b.tenant(t, "isolate", friendly)

	b.tenant(t, "global", strange)
	b.reach(t, "from a global namespace", true, server, other)
	b.reach(t, "to a global namespace", true, stranger, mate, near)
	b.reach(t, "still another tenant", false, server, near)
	b.bornApart(t)
}

// tenant runs ovnkube tenant, and waits until the Northbound database has what follows from it.
func (b *bed) tenant(t *testing.T, args ...string) {
	t.Helper()
	args = append(append([]string{"ovnkube", "tenant"}, args...), "--kubeconfig", b.Control.AdminKubeconfig())
	if out, err := b.Control.Run(t.Context(), args...); err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
	machines.FlowsInSync(t, b.Cluster)
}

// reach checks whether clients get answers from servers, over TCP and UDP.
func (b *bed) reach(t *testing.T, what string, want bool, ways []way, clients ...machines.Asker) {
	t.Helper()
	var cells []*cell
	for _, a := range clients {
		for _, w := range ways {
			c := cell{table: "tenants", column: what, row: a.Name + " asks " + w.name, asks: a}
			cells = append(cells, questions(c, w, []string{"tcp", "udp"}, func(int) bool { return want })...)
		}
	}
	for _, c := range b.untilRight(t, cells) {
		t.Errorf("%s: %s", c, c.wrong)
	}
}

// bornApart makes pods that send to, and are sent to from, a pod of another tenant from their first instant.
func (b *bed) bornApart(t *testing.T) {
	n := &nursery{bed: b, peer: b.inside(t, shop, "mate", away), peerIPs: b.pods[shop+"/mate"]}
	n.listen(t, n.peer)
	if n.raise(t, shop, true, true); n.total() == 0 || n.received.Load() == 0 {
		t.Fatalf("of a pod of the same tenant %d datagrams arrive, and %d are answered: the test shows nothing", n.total(),
			n.received.Load())
	}
	before, answered := n.total(), n.received.Load()
	n.number.Store(0)
	for end := time.Now().Add(tenantsBornFor); time.Now().Before(end) && !t.Failed(); {
		n.raise(t, friendly, true, true)
	}
	t.Logf("%d pods; %d answers; %d datagrams of theirs arrived", n.number.Load(), n.received.Load()-answered,
		n.total()-before)
	if n.received.Load() != answered || n.total() != before || n.number.Load() == 0 {
		t.Errorf("want pods, and neither answers nor arrivals: %v", n.from)
	}
}
