package cluster

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// ServiceCIDR is ranges of ClusterIPs besides the configured ones (Kubernetes API, networking.k8s.io/v1 ServiceCIDR).
type ServiceCIDR struct {
	Name  string
	CIDRs []netip.Prefix // of either family, sorted
}

// Ref implements Object.
func (c *ServiceCIDR) Ref() Ref { return Ref{KindServiceCIDR, Name{Name: c.Name}} }

// Equal implements Object.
func (c *ServiceCIDR) Equal(o Object) bool {
	d, ok := o.(*ServiceCIDR)
	return ok && c.Name == d.Name && slices.Equal(c.CIDRs, d.CIDRs)
}

// ServiceRanges lists all ranges of ClusterIPs, configured and from the API, sorted, each once.
func (s *State) ServiceRanges() []netip.Prefix {
	out := slices.Clone(s.Config.ServiceCIDRs)
	for _, c := range s.ServiceCIDRs {
		out = append(out, c.CIDRs...)
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}

// Taken is the addresses that somebody has. No Service may have them as external ones: it would redirect everybody's
// connections to its endpoints. The zero Taken is empty.
type Taken struct {
	addrs  map[netip.Addr][]Holder
	ranges []takenRange
}

// takenRange is addresses that only their holder may use.
type takenRange struct {
	netip.Prefix
	as string
}

// Holder is who has an address.
type Holder struct {
	As   string // such as HolderNode
	Name Name   // "" when the text before says it all
}

// As what somebody has an address.
const (
	HolderNode      = "an address of Node "
	HolderService   = "the ClusterIP of Service "
	HolderAPI       = "an address of the API server"
	HolderDatabases = "an address of the OVN databases"
	HolderTunnel    = "the tunnel address of another node"
)

// Among is t and the ranges that a cluster's addresses are from: those of pods, ClusterIPs and routers.
func (t Taken) Among(pods []config.ClusterSubnet, services, join []netip.Prefix) *Taken {
	t.ranges = nil
	for _, p := range pods {
		t.ranges = append(t.ranges, takenRange{p.CIDR, "for pods: in --cluster-subnets "})
	}
	for _, p := range services {
		t.ranges = append(t.ranges, takenRange{p, "for ClusterIPs: in the range "})
	}
	for _, p := range join {
		t.ranges = append(t.ranges, takenRange{p, "for routers: in --join-subnet "})
	}
	for _, text := range []string{names.HairpinSNAT4, names.HairpinSource4, names.HairpinSNAT6, names.HairpinSource6} {
		a := netip.MustParseAddr(text)
		t.ranges = append(t.ranges, takenRange{ipnet.Single(a), "the source of packets that come back: "})
	}
	return &t
}

// Put records that a holder has an address, or has it no more.
func (t *Taken) Put(a netip.Addr, h Holder, has bool) {
	if t.addrs == nil {
		t.addrs = map[netip.Addr][]Holder{}
	}
	rest := slices.DeleteFunc(t.addrs[a], func(o Holder) bool { return o == h })
	if has {
		rest = append(rest, h)
	}
	if t.addrs[a] = rest; len(rest) == 0 {
		delete(t.addrs, a)
	}
}

// whose tells whose an address is, "" for nobody's.
func (t *Taken) whose(a netip.Addr) string {
	if t == nil {
		return ""
	}
	if of := t.addrs[a]; len(of) > 0 {
		first := slices.MinFunc(of, func(x, y Holder) int {
			return cmp.Or(cmp.Compare(x.As, y.As), CompareNames(x.Name, y.Name))
		})
		return first.As + first.Name.String()
	}
	for _, r := range t.ranges {
		if r.Contains(a) {
			return r.as + r.String()
		}
	}
	return ""
}
