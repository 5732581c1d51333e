package tenant_test

import (
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// What tells no tenant does not get into one: neither from IPv6 link-local addresses, nor from addresses of pods that
// nobody has. What comes from outside, and from a service by which a pod reaches itself, does. Multicast is not decided
// about.
func TestSources(t *testing.T) {
	c := config.DefaultCluster()
	c.Multitenant = true
	c.Subnets = append(c.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix("fd01::/48"), NodeLength: 64})
	var objects []cluster.Object
	objects = append(objects, &cluster.Node{Name: "n", UID: "u"})
	for _, ns := range []string{"a", "b", "kube-system"} {
		objects = append(objects, &cluster.Namespace{Name: ns, UID: "u", Multicast: ns == "a"},
			&cluster.Pod{Name: cluster.Name{Namespace: ns, Name: "p"}, UID: "u", Node: "n"})
	}
	// Pods of "locked" are in a primary network; this one opens the port that is asked for.
	objects = append(objects, &cluster.Namespace{Name: "locked", UID: "u",
		Labels: cluster.NewLabels(map[string]string{names.PrimaryLabel: ""})},
		&cluster.Pod{Name: cluster.Name{Namespace: "locked", Name: "p"}, UID: "u", Node: "n",
			Opens: cluster.NewOpenPorts([]cluster.OpenPort{{Protocol: "udp", Number: 53}})})
	schema := nb.NewSchema()
	made := offline.NewOf(c, schema, all.Translators(schema), objects)
	db, errs := made.Database()
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	e := verdict.New(db)
	address := func(ns string, i int) netip.Addr {
		return made.State.PodNetworks[cluster.PodPort{Pod: cluster.Name{Namespace: ns, Name: "p"}}].IPs[i].Addr()
	}
	port := func(ns string) string { return names.Own.LogicalPort(ns, "p", "") }
	for _, x := range []struct {
		to, from string
		want     bool
	}{
		{"a", address("a", 0).String(), true}, {"a", address("a", 1).String(), true},
		{"a", address("b", 0).String(), false}, {"a", address("b", 1).String(), false},
		{"a", address("kube-system", 0).String(), true}, {"a", address("kube-system", 1).String(), true},
		{"kube-system", address("b", 0).String(), true}, {"kube-system", "fe80::1", true},
		{"a", "fe80::1", false}, {"a", "10.128.0.99", false}, {"a", "10.131.255.1", false}, {"a", "fd01:0:0:ffff::9", false},
		{"a", "10.128.0.2", true}, {"a", "fd01::2", true}, {"a", "10.128.0.1", false},
		{"a", "192.0.2.1", true}, {"a", "2001:db8::1", true}, {"a", "100.64.1.2", true},
		{"a", names.HairpinSNAT4, true}, {"a", names.HairpinSNAT6, true},
		{"locked", "192.0.2.1", false}, {"locked", "2001:db8::1", false}, {"locked", "100.64.1.2", false},
		{"locked", address("b", 0).String(), false}, {"locked", address("b", 1).String(), false},
		{"locked", address("kube-system", 0).String(), true}, {"locked", address("kube-system", 1).String(), true},
	} {
		p := verdict.Packet{Inport: port("b"), Outport: port(x.to), Src: netip.MustParseAddr(x.from),
			Dst: address(x.to, 0), Protocol: verdict.UDP, SrcPort: 40000, DstPort: 53}
		if p.Src.Is6() {
			p.Dst = address(x.to, 1)
		}
		step, err := e.Stage(verdict.ToLport, names.Own.NodeSwitch("n"), p)
		if err != nil || step.Allowed != x.want || len(step.Void) > 0 {
			t.Errorf("%s to %s: allowed %v, void %v, %v; want %v", x.from, x.to, step.Allowed, step.Void, err, x.want)
		}
	}
	for to, want := range map[string]bool{"a": true, "b": false} {
		p := verdict.Packet{Inport: port("a"), Outport: port(to), Src: address("a", 0), Dst: netip.MustParseAddr("239.1.2.3"),
			Protocol: verdict.UDP, SrcPort: 40000, DstPort: 53}
		step, err := e.Stage(verdict.ToLport, names.Own.NodeSwitch("n"), p)
		if err != nil || step.Allowed != want {
			t.Errorf("multicast of a to %s: allowed %v, %v; want %v", to, step.Allowed, err, want)
		}
	}
}
