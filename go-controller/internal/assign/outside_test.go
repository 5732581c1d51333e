package assign

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

func outsideNode(name string, created int64, ips ...string) *cluster.Node {
	n := &cluster.Node{Name: name, UID: "uid-" + name, Created: created, Gateway: &annotation.L3Gateway{}}
	for _, ip := range ips {
		n.Gateway.IPs = append(n.Gateway.IPs, netip.MustParsePrefix(ip))
	}
	return n
}

// Of gateways with one address those that don't have it are told who has: once,
// and again when it is another address or another loser.
func TestGatewaysWithOneAddress(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	told := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, p := range w.last.Problems {
			if p.Reason != ReasonOutsideTaken || p.UID != "uid-"+p.Ref.Name.Name || p.Ref.Kind != cluster.KindNode {
				t.Errorf("%s: problem %+v", what, p)
			}
			got = append(got, p.Ref.Name.Name+": "+p.Message)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: problems %q, want %q", what, got, want)
		}
	}
	const lost = "%s: annotation k8s.ovn.org/l3-gateway-config: ip-addresses: 192.0.2.1 is already of the gateway of Node %s: " +
		"the node is no gateway for IPv4: give it an address that no other node has, or delete Node %[2]s if its machine is gone"
	again := func(n *cluster.Node) *cluster.Node { // as it is after the patches
		heir := *n
		if old := w.state.Nodes[n.Name]; old != nil {
			heir.Annotated, heir.JoinAnnotated = old.Annotated, old.JoinAnnotated
		}
		return &heir
	}
	w.put(outsideNode("b", 2, "192.0.2.1/24"))
	told("nobody else has it")
	w.put(outsideNode("c", 3, "192.0.2.1/24"))
	told("a younger one", fmt.Sprintf(lost, "c", "b"))
	w.put(again(outsideNode("c", 3, "192.0.2.1/24", "fd00::1/64")))
	told("the same loss again")
	w.put(outsideNode("a", 1, "192.0.2.1/24"))
	told("an older one", fmt.Sprintf(lost, "b", "a"))
	w.put(again(outsideNode("b", 2, "192.0.2.2/24")))
	told("a loser gets an address of its own")
	w.drop(outsideNode("a", 1))
	told("the oldest goes: the next has it")
	w.put(outsideNode("d", 4, "192.0.2.1/24", "fd00::1/64"))
	told("both families", "d: annotation k8s.ovn.org/l3-gateway-config: ip-addresses: 192.0.2.1 is already of the gateway of Node c, fd00::1 is already of the gateway of Node c: "+
		"the node is no gateway for IPv4, IPv6: give it an address that no other node has, or delete Node c if its machine is gone")
	if restarted := w.restarted(); len(restarted.last.Problems) != 1 || len(restarted.last.Patches) != 0 {
		t.Errorf("after a restart %+v, want what d was told", restarted.last)
	}
}
