package index

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// AddressTaken is the subject of topics about a Service that names, as an external one, an address that somebody took
// or gave up; the key is that Service.
const AddressTaken cluster.Subject = "address taken"

// Taken answers whose an address is that no Service may have as an external one.
type Taken struct {
	taken  cluster.Taken
	naming cluster.NameSets[netip.Addr]  // Services by the external addresses that they name
	before map[netip.Addr]cluster.Holder // what the object that changes had
	ranges []netip.Prefix                // of ClusterIPs, as they were before it changed
}

func newTaken() *Taken { return &Taken{naming: cluster.NameSets[netip.Addr]{}} }

// TakenOf is the answers for a State.
func TakenOf(s *cluster.State) *cluster.Taken {
	return of(s, newTaken).taken.Among(s.Config.Subnets, s.ServiceRanges(), s.Config.JoinSubnets)
}

// Kinds implements cluster.Index.
func (*Taken) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindNode, cluster.KindService, cluster.KindEndpointSlice, cluster.KindServiceCIDR}
}

// Before implements cluster.Index.
func (t *Taken) Before(s *cluster.State, r cluster.Ref) {
	o := s.Object(r)
	t.before, t.ranges = held(s, o), nil
	if r.Kind == cluster.KindServiceCIDR {
		t.ranges = s.ServiceRanges()
	}
	t.name(o, false)
}

// After implements cluster.Index.
func (t *Taken) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	o := s.Object(r)
	before, now := t.before, held(s, o)
	t.before = nil
	t.name(o, true)
	of := cluster.NameSet{}
	for a, h := range before {
		if now[a] != h {
			t.taken.Put(a, h, false)
			maps.Copy(of, t.naming[a])
		}
	}
	for a, h := range now {
		if before[a] != h {
			t.taken.Put(a, h, true)
			maps.Copy(of, t.naming[a])
		}
	}
	if r.Kind == cluster.KindServiceCIDR && !slices.Equal(t.ranges, s.ServiceRanges()) {
		for _, services := range t.naming {
			maps.Copy(of, services)
		}
	}
	if r.Kind == cluster.KindService {
		of.Put(r.Name, false)
	}
	return topics(AddressTaken, of.Sorted()...)
}

// name records which external addresses a Service names, or that it names them no more.
func (t *Taken) name(o cluster.Object, in bool) {
	svc, ok := o.(*cluster.Service)
	if !ok {
		return
	}
	for _, a := range svc.ExternalIPs {
		t.naming.Put(a, svc.Name, in)
	}
	for _, i := range svc.Ingress {
		t.naming.Put(i.Addr, svc.Name, in)
	}
}

// held is the addresses that an object takes. Those that only a gateway's annotation names don't count unless the
// operator lists them: a node could keep them from Services.
func held(s *cluster.State, o cluster.Object) map[netip.Addr]cluster.Holder {
	var addrs []netip.Addr
	h := cluster.Holder{}
	switch o := o.(type) {
	case *cluster.Service:
		h, addrs = cluster.Holder{As: cluster.HolderService, Name: o.Name}, o.ClusterIPs
	case *cluster.Node:
		h = cluster.Holder{As: cluster.HolderNode, Name: cluster.Name{Name: o.Name}}
		addrs = o.Reported()
		for _, a := range gatewayAddrs(o) {
			if o.ByHand || s.Config.Claims.ListsGateway(a) {
				addrs = append(addrs, a)
			}
		}
	case *cluster.EndpointSlice:
		if o.Ref() != apiServers() {
			return nil
		}
		h.As = cluster.HolderAPI
		for _, e := range o.Endpoints {
			addrs = append(addrs, e.Addr)
		}
	}
	out := make(map[netip.Addr]cluster.Holder, len(addrs))
	for _, a := range addrs {
		out[a.Unmap()] = h
	}
	return out
}
