package serviceport

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Note tells what a service asks for and this node does not do.
type Note struct {
	Service cluster.Name
	Message string
}

// Slices are the EndpointSlices of services, by the service.
type Slices map[cluster.Name][]*cluster.EndpointSlice

// of is the slices of a service, with the endpoints that the limits let serve.
func (e Slices) of(s *cluster.Service, c config.Services) []*cluster.EndpointSlice {
	out, _ := s.Within(c, e[s.Name])
	return out
}

// Facts is what the plan depends on besides services and configuration.
type Facts struct {
	Endpoints Slices                        // of services of which NeedsEndpoints is true
	Own       []netip.Prefix                // the subnets of the node's pods
	Addrs     []netip.Addr                  // the node's own addresses, at most one per family
	Nodes     map[string][]netip.Addr       // likewise those of other nodes that RemoteNodes names, if they are known
	Held      map[netip.Addr]cluster.Holder // addresses that no service may have as external ones, as far as is known
	// Exits is, by address, where clients reach endpoints of this node that are pods of primary networks: the address of
	// the network's exit on this node, which has the node ports of services.
	Exits map[netip.Addr]netip.Addr
	// Uses are what programs of this node itself connect to: the API server and OVN's databases. No entry redirects
	// connections from the node there.
	Uses []netip.AddrPort
}

// planner gathers entries.
type planner struct {
	node    string
	facts   Facts
	prefers preferences
	ranges  []netip.Prefix
	limits  config.Services
	held    *cluster.Taken
	taken   map[hostplan.ServiceEntry]bool
	entries []hostplan.ServiceEntry
	notes   []Note
}

// Plan serves these services, in any order, to clients outside of the cluster and to
// the node. An address and port that several services name is the oldest service's,
// then the first's by name, as in the load balancers. An address that is some
// service's ClusterIP is that service's, and needs nothing here.
func Plan(services []*cluster.Service, f Facts, c config.Node) (hostplan.Plan, []Note) {
	services = cluster.Share(services, c.Services)
	p := planner{
		node: c.Name, facts: f, prefers: preferences{c.Name, map[string]uint64{}}, ranges: c.ServiceCIDRs,
		limits: c.Services, held: f.taken(services).Among(c.ClusterSubnets, c.ServiceCIDRs, nil),
		taken: map[hostplan.ServiceEntry]bool{},
	}
	room := len(f.Uses)
	for _, s := range services {
		room += len(s.ClusterIPs) * len(s.Ports) * usual(s)
	}
	p.entries = append(make([]hostplan.ServiceEntry, 0, min(room, mostRoom)), exempt(f.Uses)...)
	sorted := slices.SortedFunc(slices.Values(services), func(a, b *cluster.Service) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cluster.CompareNames(a.Name, b.Name))
	})
	for _, s := range sorted {
		p.service(s)
	}
	n := hostplan.ServiceNode{Link: names.ManagementInterface(c.Name), Ranges: c.ServiceCIDRs, Own: f.Own}
	for _, s := range c.ClusterSubnets {
		n.Pods = append(n.Pods, s.CIDR)
	}
	item := hostplan.NewServicePorts(n, p.entries)
	return hostplan.Plan{Host: []hostplan.Item{item}}, p.notes
}

// mostRoom is for how many entries memory is set aside before they are made.
const mostRoom = 100_000

// taken is what no service may have as an external address, among the addresses that services name.
func (f Facts) taken(services []*cluster.Service) (t cluster.Taken) {
	named := map[netip.Addr]bool{}
	for _, s := range services {
		for _, a := range s.ExternalIPs {
			named[a] = true
		}
		for _, i := range s.Ingress {
			named[i.Addr] = true
		}
	}
	put := func(a netip.Addr, h cluster.Holder) {
		if named[a] {
			t.Put(a, h, true)
		}
	}
	for a, h := range f.Held {
		put(a, h)
	}
	for _, s := range services {
		for _, a := range s.ClusterIPs {
			put(a, cluster.Holder{As: cluster.HolderService, Name: s.Name})
		}
	}
	return t
}

// usual is how many entries a port of a service mostly has in one family.
func usual(s *cluster.Service) int {
	if s.ExternalLocal {
		return 2 + hostplan.RemoteBuckets
	}
	return 1
}

// serving is a service and what of it is served.
type serving struct {
	*cluster.Service
	external  []cluster.ServiceAddr
	nodePorts bool
	outside   []uint16 // the OutsidePort of each port
	endpoints []*cluster.EndpointSlice
}

func (p *planner) service(s *cluster.Service) {
	w := serving{Service: s, nodePorts: s.ServesNodePorts(p.limits), outside: s.OutsidePorts()}
	for _, a := range s.Addresses(p.limits, p.held) {
		switch {
		case a.Withheld.Refused():
			p.note(s, "%s: %s: %s: the service does not answer there", a.Origin, a.Addr, a.Withheld)
		case a.Origin != cluster.FromClusterIPs && a.Withheld.Served():
			w.external = append(w.external, a)
		}
	}
	if excess := s.Excess(p.limits); excess != "" {
		p.note(s, "%s", excess)
	}
	if s.ExternalLocal {
		w.endpoints = p.facts.served(s, p.limits)
	}
	for _, to := range s.ClusterIPs {
		if !slices.ContainsFunc(p.ranges, func(r netip.Prefix) bool { return r.Contains(to) }) {
			p.note(s, "ClusterIP %s is in none of --k8s-service-cidrs %v: from outside the service is not served", to, p.ranges)
			continue
		}
		for i := range s.Ports {
			p.port(w, i, to)
		}
	}
}

func (p *planner) note(s *cluster.Service, format string, args ...any) {
	p.notes = append(p.notes, Note{s.Name, fmt.Sprintf(format, args...)})
}

// mostShared is at how many places a service may share out connections among several endpoints of a node, which takes
// an entry for each bucket.
const mostShared = 128

// port serves a port of a service at all its places, in one address family.
func (p *planner) port(s serving, i int, clusterIP netip.Addr) {
	port, is4 := s.Ports[i], clusterIP.Is4()
	w := target{
		clusterIP: netip.AddrPortFrom(clusterIP, s.outside[i]), protocol: string(port.Protocol),
		local: s.ExternalLocal, sticky: s.AffinitySeconds > 0,
	}
	if s.ExternalLocal {
		w.backends = p.facts.byExits(cluster.OnNode(p.node, port, is4, s.endpoints), port)
	}
	if n := len(w.backends); n > 1 && len(s.Ports)*len(s.ClusterIPs)+len(s.Ports)*len(s.external) > mostShared {
		w.backends = w.backends[i%n:][:1]
	} else if n > 1 {
		w.backends = assignBuckets(w.backends, hostplan.ServiceBuckets)
	}
	if port.NodePort != 0 && s.nodePorts && p.serve(nodePortAt(is4, port.NodePort), w) {
		p.remoteBackends(s, port, w)
	}
	for _, a := range s.external {
		if a.Addr.Is4() != is4 {
			continue
		}
		at := netip.AddrPortFrom(a.Addr, port.Port)
		if p.serve(at, w) && a.Withheld == cluster.SourcesLimits {
			p.limit(hostplan.ServiceEntry{Protocol: w.protocol, At: at}, s.SourceRanges)
		}
	}
}

// nodePortAt is where a node port is served: at every address.
func nodePortAt(is4 bool, port uint16) netip.AddrPort {
	if is4 {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), port)
}

// target is where connections to a port of a service go, in one address family.
type target struct {
	clusterIP netip.AddrPort
	protocol  string
	local     bool             // connections from outside go to endpoints only, and keep the client's address
	backends  []netip.AddrPort // of endpoints on this node: none, the only one, or that of each bucket
	sticky    bool             // a client keeps its endpoint
}

// serve adds entries for a place, unless another service has it.
func (p *planner) serve(at netip.AddrPort, w target) bool {
	e := hostplan.ServiceEntry{Kind: hostplan.ServeEntry, Protocol: w.protocol, At: at, To: w.clusterIP}
	if p.taken[e.Place()] {
		return false
	}
	p.taken[e.Place()] = true
	p.entries = append(p.entries, e)
	if !w.local {
		return true
	}
	p.entries = append(p.entries, hostplan.ServiceEntry{Kind: hostplan.InsideEntry, Protocol: w.protocol, At: at})
	p.choose(e, w.backends, kinds{hostplan.LocalEntry, hostplan.ShareEntry, hostplan.StickEntry}, w.sticky)
	return true
}

// kinds are the kinds of entries for one backend, and for a random one or the client's
// of several.
type kinds struct{ only, share, stick hostplan.ServiceEntryKind }

// choose sends connections to an entry's place to the only backend, or to that of their
// bucket.
func (p *planner) choose(e hostplan.ServiceEntry, backends []netip.AddrPort, k kinds, sticky bool) {
	switch {
	case len(backends) == 1:
		e.Kind = k.only
	case sticky:
		e.Kind = k.stick
	default:
		e.Kind = k.share
	}
	for e.Bucket, e.To = range backends {
		p.entries = append(p.entries, e)
	}
}

// NeedsEndpoints tells whether the plan depends on the service's endpoints.
func NeedsEndpoints(s *cluster.Service) bool { return s.LocalFromOutside() || s.HealthCheckPort != 0 }

// limit admits only these sources to the entry's place. It leaves out a range within
// another, as the kernel's sets take no ranges that overlap. The zero Prefix is
// nobody.
func (p *planner) limit(e hostplan.ServiceEntry, ranges []netip.Prefix) {
	e.Kind = hostplan.LimitEntry
	p.entries = append(p.entries, e)
	for _, r := range widest(ranges) {
		if r.Addr().Is4() == e.At.Addr().Is4() {
			e.Kind, e.From = hostplan.AllowEntry, r
			p.entries = append(p.entries, e)
		}
	}
}

// widest leaves out ranges that are within another, and invalid ones. A Service may have thousands: they are not
// compared each with each.
func widest(ranges []netip.Prefix) (out []netip.Prefix) {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b netip.Prefix) int {
		return cmp.Or(a.Masked().Addr().Compare(b.Masked().Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	for _, r := range sorted { // a range comes after all that it may be within
		if r.IsValid() && (len(out) == 0 || !out[len(out)-1].Overlaps(r)) {
			out = append(out, r)
		}
	}
	return out
}
