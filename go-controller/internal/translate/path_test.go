package translate_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// smallCluster is a configuration in which everything runs out: it has subnets for four nodes, a node has addresses for
// 12 pods, and the join switch for five gateway routers.
func smallCluster() config.Cluster {
	c := config.DefaultCluster()
	c.Subnets = []config.ClusterSubnet{
		{CIDR: netip.MustParsePrefix("10.0.0.0/26"), NodeLength: 28},
		{CIDR: netip.MustParsePrefix("fd01::/62"), NodeLength: 64},
	}
	c.JoinSubnets = []netip.Prefix{netip.MustParsePrefix("100.64.1.0/29"), netip.MustParsePrefix("fd98::/64")}
	c.Claims.GatewayCIDRs = []netip.Prefix{netip.MustParsePrefix("172.18.0.0/29"), netip.MustParsePrefix("fc00::/125")}
	c.Claims.PinCIDRs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/26")}
	c.PhysicalNetworks = []config.PhysicalNetwork{{Name: "lan", First: 100, Last: 200}}
	return c
}

// The pools that a path draws its names from.
const (
	manyNodes      = 6
	manyNamespaces = 3
	manyPods       = 40
	manyServices   = 6
	manySlices     = 10
)

// path is a random history of a cluster: the API server's objects, and the events.
type path struct {
	r       *rand.Rand
	objects map[cluster.Ref]cluster.Object
	uids    int
	clock   int64
	// primary is true for a path on which most namespaces have a primary network, and their services are plain ones.
	primary bool
}

func newPath(seed uint64) *path {
	return &path{r: rand.New(rand.NewPCG(seed, 99)), objects: map[cluster.Ref]cluster.Object{}}
}

func (p *path) chance(percent int) bool { return p.r.IntN(100) < percent }

func (p *path) uid() string {
	p.uids++
	return fmt.Sprintf("uid-%d", p.uids)
}

func (p *path) name(prefix string, n int) cluster.Name {
	return cluster.Name{Namespace: fmt.Sprintf("ns%d", p.r.IntN(manyNamespaces)), Name: fmt.Sprintf("%s%d", prefix,
		p.r.IntN(n))}
}

// step is one event.
func (p *path) step() cluster.Event {
	p.clock++
	var o cluster.Object
	switch n := p.r.IntN(100); {
	case n < 10:
		o = p.node()
	case n < 15:
		o = &cluster.Namespace{Name: fmt.Sprintf("ns%d", p.r.IntN(manyNamespaces)), UID: p.uid(), Labels: p.namespaceLabels(),
			Multicast: p.chance(40), Logging: p.logging(),
			Tenant: []string{"", "", "ns0", "blue", cluster.GlobalTenant}[p.r.IntN(5)]}
	case n < 63:
		o = p.pod()
	case n < 67:
		o = [](func() cluster.Object){p.definition, p.userNetwork, p.clusterNetwork, p.ipamClaim}[p.r.IntN(4)]()
	case n < 71:
		o = p.policy()
	case n < 73:
		o = p.multiPolicy()
	case n < 75:
		o = p.clusterPolicy()
	case n < 76:
		o = p.domainName()
	case n < 78:
		o = p.dns()
	case n < 84:
		o = p.service()
	case n < 86:
		o = &cluster.ServiceCIDR{Name: fmt.Sprintf("range%d", p.r.IntN(2)),
			CIDRs: []netip.Prefix{netip.MustParsePrefix([]string{"10.97.0.0/16", "10.96.0.0/16", "fd03::/112"}[p.r.IntN(3)])}}
	default:
		o = p.slice()
	}
	if p.chance(30) {
		return p.set(o.Ref(), nil)
	}
	return p.set(o.Ref(), o)
}

// set changes the API server's object.
func (p *path) set(r cluster.Ref, o cluster.Object) cluster.Event {
	if o == nil {
		delete(p.objects, r)
	} else {
		p.objects[r] = o
	}
	return cluster.Event{Ref: r, New: o}
}

func (p *path) node() cluster.Object {
	name := fmt.Sprintf("n%d", p.r.IntN(manyNodes))
	n := &cluster.Node{Name: name, UID: p.uid(), Created: p.clock}
	if old, ok := p.objects[n.Ref()].(*cluster.Node); ok && p.chance(80) {
		*n = *old
	}
	n.Unreachable = p.chance(10)
	if p.chance(10) {
		n.Physical = [][]string{nil, {}, {"lan"}, {"lan", "storage"}}[p.r.IntN(4)]
	}
	if p.chance(20) {
		n.Labels = p.labels()
	}
	if p.chance(10) {
		n.Addrs = []netip.Addr{netip.MustParseAddr(fmt.Sprintf("172.18.0.%d", 7+p.r.IntN(4))),
			netip.MustParseAddr([]string{"fc00::10", "fc00::9", "10.0.0.5"}[p.r.IntN(3)])}
	}
	switch p.r.IntN(10) {
	case 9: // the label comes, changes or goes
		n.Zone = []string{"", "a", "b"}[p.r.IntN(3)]
	case 0:
		n.ChassisID = fmt.Sprintf("chassis-%d", p.r.IntN(3))
	case 1:
		n.Annotated = ""
	case 2:
		n.Annotated = "malformed"
	case 3: // somebody writes subnets that may be taken, of the wrong size, or out of range
		v4, _ := ipnet.Subnet(netip.MustParsePrefix("10.0.0.0/25"), 27+p.r.IntN(3), uint64(p.r.IntN(4)))
		v6, _ := ipnet.Subnet(netip.MustParsePrefix("fd01::/61"), 64, uint64(p.r.IntN(8)))
		n.Annotated = annotation.MarshalNodeSubnets([]netip.Prefix{v4, v6}[:1+p.r.IntN(2)])
	case 4, 5:
		n.Gateway = p.gateway(name)
	case 6:
		n.Gateway = nil
	case 7: // somebody writes a place on the join switch that may be taken or none at all
		k := 1 + p.r.IntN(6)
		addrs := []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("100.64.1.%d/29", k)),
			netip.MustParsePrefix(fmt.Sprintf("fd98::%d/64", k))}
		n.JoinAnnotated = annotation.MarshalGatewayJoinAddrs(addrs[:1+p.r.IntN(2)])
	}
	return n
}

// gateway is a gateway of one or both families, with next hops or without.
func (p *path) gateway(node string) *annotation.L3Gateway {
	g := &annotation.L3Gateway{Bridge: "breth0", Network: "physnet", Port: "breth0_" + node,
		MAC: ipnet.MAC{2, byte(p.r.IntN(3))}, VLAN: p.r.IntN(2) * 7,
		MTU: p.r.IntN(2) * 1500, PodMTU: p.r.IntN(2) * 1400}
	for i, ip := range []string{"172.18.0.%d/16", "fc00::%d/64"} {
		if len(g.IPs) == 0 && i == 1 || p.chance(70) { // an address that another gateway may have
			g.IPs = append(g.IPs, netip.MustParsePrefix(fmt.Sprintf(ip, 6+p.r.IntN(4))))
			if p.chance(70) {
				g.NextHops = append(g.NextHops, netip.MustParseAddr([]string{"172.18.0.1", "fc00::1"}[i]))
			}
		}
	}
	if p.chance(30) {
		g.Out = "ovn-controller does not answer"
	}
	if p.chance(30) {
		g.Rampout = append(g.Rampout, netip.MustParsePrefix([]string{"10.0.0.16/28", "10.0.0.0/26",
			"fd01::/64"}[p.r.IntN(3)]))
	}
	return g
}

func (p *path) pod() cluster.Object {
	pod := &cluster.Pod{Name: p.name("p", manyPods), UID: p.uid(), Created: p.clock}
	if old, ok := p.objects[pod.Ref()].(*cluster.Pod); ok && p.chance(60) {
		*pod = *old
	}
	if pod.Node == "" && p.chance(80) || p.chance(5) {
		pod.Node = fmt.Sprintf("n%d", p.r.IntN(manyNodes))
	}
	switch p.r.IntN(13) {
	case 12: // it opens ports of its interface in the cluster's own network
		all := []cluster.OpenPort{{Protocol: "icmp"}, {Protocol: "tcp", Number: 80}, {Protocol: "udp", Number: 53}}
		pod.Opens = cluster.NewOpenPorts(all[:p.r.IntN(4)])
	case 0:
		pod.Finished = true
	case 1:
		pod.HostNetwork = !pod.HostNetwork
	case 2:
		pod.Annotated, pod.ClassicOK = "", false
	case 3:
		pod.Annotated, pod.ClassicOK = "malformed", false
	case 4: // somebody writes an address that may be taken or not the node's
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(p.r.IntN(80))})
		b, _ := ipnet.Nth(netip.MustParsePrefix(fmt.Sprintf("fd01:0:0:%d::/64", p.r.IntN(4))), uint64(p.r.IntN(20)))
		if p.chance(30) { // where health checks come from
			a, _ = cluster.HealthSource(netip.PrefixFrom(a, 28).Masked())
		}
		ips := []netip.Prefix{netip.PrefixFrom(a, 28), netip.PrefixFrom(b, 64)}
		n := annotation.PodNetwork{IPs: ips, MAC: ipnet.MACFor(ipnet.Addrs(ips))}
		pod.Annotated = annotation.MarshalAttachments(map[string]annotation.PodNetwork{"default": n, "blue/net1": n})
		pod.ClassicOK = p.chance(50)
	case 7: // interfaces in another network come and go; one network is never there
		all := []cluster.Attachment{{Network: "blue", Interface: "net1"}, {Network: "blue", Interface: "net2"},
			{Network: "green", Interface: "net3"}, p.request("net4"), p.request("net5")}
		pod.Attachments = slices.Clone(all[:p.r.IntN(6)])
	case 8:
		pod.Labels, pod.Arrived = p.labels(), p.chance(50)
	case 10: // it asks for addresses in its primary network
		pod.Preferred = p.asked()
	case 9:
		pod.Ports = cluster.NewNamedPorts(map[cluster.PortName]uint16{
			{Protocol: cluster.TCP, Name: "web"}: uint16(8080 + p.r.IntN(2)), {Protocol: cluster.UDP, Name: "dns"}: 53,
		})
	case 5, 6: // limits come, change and go
		pod.Bandwidth = cluster.Bandwidth{Ingress: uint64(p.r.IntN(3)) * 1_000_000, Egress: uint64(p.r.IntN(3)) * 1_000}
	}
	return pod
}

func (p *path) service() cluster.Object {
	s := &cluster.Service{Name: p.name("s", manyServices), UID: p.uid(), Created: p.clock, Type: cluster.LoadBalancer,
		Headless: p.chance(5)}
	if p.primary && p.chance(20) {
		s.Name = cluster.ExitServices()[p.r.IntN(2)]
	}
	if old, ok := p.objects[s.Ref()].(*cluster.Service); ok && p.chance(70) {
		s.UID, s.Created = old.UID, old.Created
	}
	if p.chance(10) {
		s.Created = 1 // made in the same second as others
	}
	if !s.Headless {
		s.ClusterIPs = p.addresses("10.96.0.%d", "fd02::%d", 2)
	}
	s.ExternalIPs = p.addresses("192.0.2.%d", "2001:db8::%d", 2)
	if p.chance(5) {
		s.ExternalIPs = p.addresses("10.96.0.%d", "fd02::%d", 2) // somebody's cluster IPs
	}
	for _, a := range p.addresses("192.0.2.%d", "2001:db8::%d", 3) {
		s.Ingress = append(s.Ingress, cluster.Ingress{Addr: a, Proxied: p.chance(20)})
	}
	if p.chance(15) {
		s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	}
	for i, proto := range cluster.Protocols() {
		if p.chance(60) {
			s.Ports = append(s.Ports, cluster.ServicePort{Name: fmt.Sprintf("port%d", i), Protocol: proto,
				Port: uint16(1 + p.r.IntN(2)), NodePort: uint16(p.r.IntN(2) * 30000)})
		}
	}
	s.AffinitySeconds = []int{0, 0, 10800, 86400}[p.r.IntN(4)]
	if p.chance(25) {
		s.HealthCheck = annotation.HealthCheck{Interval: 1 + p.r.IntN(2), Timeout: 1, Successes: 1, Failures: 1}
	}
	s.InternalLocal, s.ExternalLocal, s.PublishNotReady = p.chance(25) && !p.primary, p.chance(20), p.chance(10)
	return s
}

// addresses lists up to n addresses of each family, most often one of the first.
func (p *path) addresses(v4, v6 string, n int) []netip.Addr {
	var out []netip.Addr
	for _, format := range []string{v4, v6} {
		if p.chance(70) {
			out = append(out, netip.MustParseAddr(fmt.Sprintf(format, 1+p.r.IntN(n))))
		}
	}
	return out
}

func (p *path) slice() cluster.Object {
	e := &cluster.EndpointSlice{Name: p.name("e", manySlices)}
	if p.chance(90) {
		e.Service = fmt.Sprintf("s%d", p.r.IntN(manyServices))
	}
	for i, proto := range cluster.Protocols() {
		if p.chance(60) {
			e.Ports = append(e.Ports, cluster.EndpointPort{Name: fmt.Sprintf("port%d", i), Protocol: proto,
				Port: uint16(8080 + p.r.IntN(2))})
		}
	}
	zoned, noded, ready := p.chance(50), p.chance(30), p.primary || p.chance(50)
	for range p.r.IntN(4) {
		ep := cluster.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(3 + p.r.IntN(40))}),
			Conditions: cluster.Conditions(p.r.IntN(8)), Node: fmt.Sprintf("n%d", p.r.IntN(manyNodes))}
		if p.chance(30) {
			ep.Addr = netip.AddrFrom16([16]byte{0: 0xfd, 1: 1, 15: byte(3 + p.r.IntN(40))})
		}
		if p.primary || p.chance(50) {
			ep.Zone, ep.Pod = "a", fmt.Sprintf("p%d", p.r.IntN(manyPods))
			ep.Addr = p.addrOf(cluster.Name{Namespace: e.Name.Namespace, Name: ep.Pod}, ep.Addr)
		}
		if zoned && p.chance(90) { // one without a hint is enough for none to count
			ep.ForZones = []string{"a", "b", "a,b", "c"}[p.r.IntN(4)]
		}
		if noded && p.chance(90) {
			ep.ForNodes = []string{ep.Node, "n0,n1"}[p.r.IntN(2)]
		}
		if ready {
			ep.Conditions |= cluster.Ready
		}
		e.Endpoints = append(e.Endpoints, ep)
	}
	slices.SortFunc(e.Endpoints, cluster.CompareEndpoints)
	e.Endpoints = slices.Compact(e.Endpoints)
	return e
}

// patched is the event that a patch leads to. ok is false when the object was deleted or replaced meanwhile, and the
// patch was refused.
func (p *path) patched(patch allocate.Patch) (e cluster.Event, ok bool) {
	switch o := p.objects[patch.Ref].(type) {
	case *cluster.IPAMClaim:
		if o.UID != patch.UID || o.Status != patch.Claim.Found {
			return cluster.Event{}, false
		}
		c := *o
		if c.Own = patch.Claim.Condition; c.Own.True {
			c.IPs, c.Pod = patch.Claim.IPs, patch.Claim.Pod
		}
		c.Status = fmt.Sprint(c.IPs, c.Pod, c.Own)
		return p.set(patch.Ref, &c), true
	case *cluster.Node:
		if o.UID != patch.UID {
			return cluster.Event{}, false
		}
		n := *o
		if raw, ok := patch.Annotations[annotation.NodeSubnets]; ok || slices.Contains(patch.Remove, annotation.NodeSubnets) {
			n.Annotated = raw
		}
		if raw, ok := patch.Annotations[annotation.GatewayJoinAddrs]; ok ||
			slices.Contains(patch.Remove, annotation.GatewayJoinAddrs) {
			n.JoinAnnotated = raw
		}
		return p.set(patch.Ref, &n), true
	case *cluster.Pod:
		if o.UID != patch.UID {
			return cluster.Event{}, false
		}
		q := *o
		if len(patch.Remove) > 0 {
			q.Annotated, q.ClassicOK = "", false
			return p.set(patch.Ref, &q), true
		}
		q.Annotated = patch.Annotations[annotation.PodNetworks]
		q.StatusOK = q.StatusOK || patch.Annotations[annotation.NetworkStatus] != ""
		net, err := annotation.ParsePodNetworks(q.Annotated)
		q.ClassicOK = err == nil && patch.Annotations[annotation.PodClassic] == annotation.MarshalPodClassic(net)
		return p.set(patch.Ref, &q), true
	}
	return cluster.Event{}, false
}

func (p *path) logging() (out cluster.Logging) {
	for _, severity := range []*cluster.Severity{&out.Allow, &out.Deny} {
		if p.chance(40) {
			*severity = cluster.Severities()[p.r.IntN(2)]
		}
	}
	return out
}
