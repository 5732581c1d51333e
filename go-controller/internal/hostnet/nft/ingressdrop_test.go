package nft

import (
	"os/exec"
	"testing"

	"github.com/google/nftables"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// The kernel no longer answers what arrives on the link, and does again when
// the drop is removed; other links are left alone.
func TestIngressDrop(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.Run(t, "sh", "-ec", `ip netns add outside
ip link add m0 type veth peer name eth0 netns outside
ip link add m2 type veth peer name m3
ip addr add 192.0.2.1/24 dev m0; ip link set m0 up; ip link set m2 up
ip -n outside addr add 192.0.2.2/24 dev eth0; ip -n outside link set eth0 up`)
	k := NewTables()
	ping := func() bool {
		return exec.Command("ip", "netns", "exec", "outside", "ping", "-c1", "-W1", "192.0.2.1").Run() == nil
	}
	testkit.Eventually(t, "an answer", func() string {
		if !ping() {
			return "none"
		}
		return ""
	})
	want := []hostplan.Item{hostplan.IngressDrop{Link: "m0"}, hostplan.IngressDrop{Link: "m2"}}
	for _, n := range []int{2, 0} {
		if changes, err := item.Converge(t.Context(), k, want); err != nil || len(changes) != n {
			t.Fatalf("changes %v, %v; want %d", changes, err, n)
		}
	}
	if ping() {
		t.Error("the kernel still answers")
	}
	for i, w := range want {
		if err := k.Apply(item.Change{Have: w}); err != nil {
			t.Fatal(err)
		}
		if err := k.Apply(item.Change{Have: w}); err != nil {
			t.Errorf("removing what is gone: %v", err)
		}
		if have, err := k.Read(want); err != nil || len(have) != 1-i {
			t.Errorf("after removing %d: %v %v", i+1, have, err)
		}
	}
	if !ping() {
		t.Error("the kernel does not answer again")
	}
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	if tables, err := c.ListTables(); err != nil || len(tables) != 0 {
		t.Errorf("left in nftables: %v %v", tables, err)
	}
}
