package translate_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// moving is a cluster in which the pods a and b of a virtual machine have the addresses of one claim.
func moving(t *testing.T, p *path) *master {
	t.Helper()
	m := newMaster()
	m.begin(t)
	in := func(name string) cluster.Name { return cluster.Name{Namespace: "ns", Name: name} }
	objects := []cluster.Object{&cluster.Node{Name: "n1", UID: "u-n1", ChassisID: "c1"},
		&cluster.Node{Name: "n2", UID: "u-n2", ChassisID: "c2"}, &cluster.Namespace{Name: "ns"},
		&cluster.NetworkDefinition{Name: in("lan"), Network: &cluster.Network{Name: names.Defined("ns", "lan"),
			Topology: cluster.Layer2, Persistent: true,
			Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/24")}}}},
		&cluster.IPAMClaim{Name: in("vm"), UID: "u-vm", Network: "lan"}}
	for i, name := range []string{"a", "b"} {
		pod := &cluster.Pod{Name: in(name), UID: "u-" + name, Created: int64(10 + i), Node: fmt.Sprint("n", i+1),
			Labels:      cluster.NewLabels(map[string]string{annotation.MachineLabel: "vm"}),
			Attachments: []cluster.Attachment{{Network: "ns.lan", Interface: "net1", Asked: cluster.Asked{Claim: "vm"}}}}
		objects = append(objects, pod)
	}
	m.settle(t, p, come(objects...)...)
	return m
}

// podWith is the object of a pod with a change.
func (p *path) podWith(t *testing.T, name string, change func(*cluster.Pod)) *cluster.Pod {
	t.Helper()
	ref := cluster.Ref{Kind: cluster.KindPod, Name: cluster.Name{Namespace: "ns", Name: name}}
	old, ok := p.objects[ref].(*cluster.Pod)
	if !ok {
		t.Fatalf("there is no %s", ref)
	}
	out := *old
	change(&out)
	return &out
}

// works lists the pods whose port in the network lan passes packets, and checks that the other ports pass none.
func (m *master) works(t *testing.T) (out string) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		rows, err := m.Rows(nb.Owner{Kind: names.KindPod, Name: "ns/" + name})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows.Rows {
			port, ok := row.Model.(*nbdb.LogicalSwitchPort)
			if !ok || row.Key.Role == names.Own.PortRole("") {
				continue
			}
			switch off := port.Enabled != nil && !*port.Enabled; {
			case !off && len(port.Addresses) == 1:
				out += name
			case !off || len(port.Addresses) > 0 || len(port.PortSecurity) == 0:
				t.Errorf("port %s: enabled %v, addresses %v, port security %v: want all or nothing", port.Name, !off,
					port.Addresses, port.PortSecurity)
			}
		}
	}
	return out
}

// Of the two pods of a virtual machine, one has a port that passes packets: the one where the machine runs.
func TestPortsOfAMachineThatMoves(t *testing.T) {
	p := newPath(0)
	m := moving(t, p)
	arrived := func(q *cluster.Pod) { q.Arrived = true }
	is := func(want, when string) {
		t.Helper()
		if got := m.works(t); got != want {
			t.Errorf("%s: the ports of %q pass packets, want %q", when, got, want)
		}
	}
	is("a", "before the machine has arrived")
	m.settle(t, p, come(p.podWith(t, "b", arrived))...)
	is("b", "when it has")
	m.settle(t, p, come(p.podWith(t, "b", func(q *cluster.Pod) { q.Finished = true }))...)
	is("a", "when that pod has finished")
	m.settle(t, p, come(p.podWith(t, "b", func(q *cluster.Pod) { q.Finished, q.Arrived = false, false }))...)
	is("a", "when it is there again")
	m.settle(t, p, come(p.podWith(t, "a", arrived))...)
	is("a", "when the machine has come to a before")
	m.settle(t, p, come(p.podWith(t, "b", arrived))...)
	is("b", "when it has come to both, first to the older")
	m.settle(t, p, cluster.Event{Ref: p.podWith(t, "a", arrived).Ref()})
	is("b", "when a is gone")
}
