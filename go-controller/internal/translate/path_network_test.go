package translate_test

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

const manyDefinitions = 3

// definition is a NetworkAttachmentDefinition: a network of any topology, one that can't be used, or another plugin's.
func (p *path) definition() cluster.Object {
	d := &cluster.NetworkDefinition{Name: p.name("d", manyDefinitions), UID: p.uid(), Created: p.r.Int64N(3)}
	if p.primary && p.chance(80) {
		d.Name.Name = "d0"
	}
	n := &cluster.Network{Name: names.Defined(d.Name.Namespace, d.Name.Name), MTU: []int{0, 0, 1300}[p.r.IntN(3)],
		Persistent: p.chance(40)}
	shared := func(ps ...string) {
		for _, text := range ps {
			n.Subnets = append(n.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix(text)})
		}
		if p.chance(30) {
			n.Excluded = []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.99.0.%d/30", 4*p.r.IntN(3)))}
		} else if p.chance(30) {
			n.Reserved = []netip.Prefix{netip.MustParsePrefix("10.99.0.0/30"), netip.MustParsePrefix("fd99::/126")}
		}
	}
	d.Network = n
	kind := p.r.IntN(10)
	if p.primary {
		kind = 5 + kind/3
	}
	switch kind {
	case 0:
		d.Network, d.Invalid = nil, "spec.config: wrong"
	case 1:
		d.Network, d.Foreign = nil, true
	case 2:
		n.Persistent = false
		n.Subnets = []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.98.0.0/26"), NodeLength: 28}}
	case 3:
		n.Topology, n.Persistent = cluster.Layer2, false
	case 4:
		n.Topology, n.Physical = cluster.Localnet, cluster.Physical{Name: "lan", VLAN: 100 * p.r.IntN(3)}
		shared("10.99.0.0/28")
	case 5, 6:
		n.Topology, n.Primary = cluster.Layer2, true
		shared("10.99.0.0/28", "fd99::/64")
		if p.chance(30) {
			n.Routers = []netip.Addr{netip.MustParseAddr("10.99.0.9")}
		}
		p.join(n)
	case 7:
		n.Primary, n.Persistent = true, false
		n.Subnets = []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.98.0.0/26"), NodeLength: 28},
			{CIDR: netip.MustParsePrefix("fd98:1::/62"), NodeLength: 64}}
		p.join(n)
	default:
		n.Topology = cluster.Layer2
		shared([]string{"10.99.0.0/28", "10.99.0.0/27"}[p.r.IntN(2)], "fd99::/64")
	}
	return d
}

// multiPolicy is one of a few MultiNetworkPolicies, which are about the same networks.
func (p *path) multiPolicy() cluster.Object {
	policy, _ := p.policy().(*cluster.NetworkPolicy)
	n := &cluster.MultiNetworkPolicy{NetworkPolicy: *policy}
	if old, ok := p.objects[n.Ref()].(*cluster.MultiNetworkPolicy); ok && p.chance(80) {
		n.UID = old.UID
	}
	for i := range manyDefinitions {
		if p.chance(50) {
			n.Named = append(n.Named, names.Defined(n.Name.Namespace, fmt.Sprintf("d%d", i)))
		}
	}
	n.Networks = n.Named
	return n
}

// dns is a part of the cluster's DNS: its Service, an EndpointSlice, one of its pods, or their namespace.
func (p *path) dns() cluster.Object {
	name := func(of string) cluster.Name { return cluster.Name{Namespace: "kube-system", Name: of} }
	switch p.r.IntN(4) {
	case 0:
		return &cluster.Service{Name: name("kube-dns"), UID: p.uid(), Created: p.clock, Type: cluster.ClusterIP,
			ClusterIPs: p.addresses("10.96.0.%d", "fd02::%d", 2),
			Ports:      []cluster.ServicePort{{Name: "dns", Protocol: cluster.UDP, Port: 53}}}
	case 1:
		e := &cluster.EndpointSlice{Name: name(fmt.Sprint("dns", p.r.IntN(2))), Service: "kube-dns",
			Ports: []cluster.EndpointPort{{Name: "dns", Protocol: cluster.UDP, Port: 53}}}
		for i := range p.r.IntN(3) {
			e.Endpoints = append(e.Endpoints, cluster.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(41 + i)}),
				Conditions: cluster.Ready, Pod: fmt.Sprint("dns", i)})
		}
		return e
	case 2:
		pod := &cluster.Pod{Name: name(fmt.Sprint("dns", p.r.IntN(2))), UID: p.uid(), Created: p.clock, Node: "n0",
			Labels: p.labels(), HostNetwork: p.chance(20), Finished: p.chance(20)}
		if old, ok := p.objects[pod.Ref()].(*cluster.Pod); ok && p.chance(80) {
			pod.UID, pod.Created, pod.Annotated, pod.ClassicOK = old.UID, old.Created, old.Annotated, old.ClassicOK
		}
		return pod
	}
	return &cluster.Namespace{Name: "kube-system", UID: "system", Labels: p.labels()}
}

// join gives a primary network its join subnets.
func (p *path) join(n *cluster.Network) {
	second := []string{"100.66.0.0/15", "100.70.0.0/24", "10.96.0.0/16"}[p.r.IntN(3)] // the last is the cluster's own
	if err := n.SetJoin([]netip.Prefix{netip.MustParsePrefix(second), netip.MustParsePrefix("fd66::/64")}); err != nil {
		panic(err)
	}
}

// userNetwork is a UserDefinedNetwork, perhaps of the name of a NetworkAttachmentDefinition.
func (p *path) userNetwork() cluster.Object {
	d, ok := p.definition().(*cluster.NetworkDefinition)
	if !ok {
		return nil
	}
	u := &cluster.UserNetwork{Name: d.Name, UID: d.UID, Created: d.Created, Network: d.Network, Invalid: d.Invalid,
		Protected: true}
	switch {
	case u.Network == nil:
		u.Invalid = "spec.topology: wrong"
	case u.Network.Topology == cluster.Localnet:
		u.Network.Topology, u.Network.Physical = cluster.Layer2, cluster.Physical{}
		fallthrough
	default:
		u.Network.Excluded, u.Network.UserDefined = nil, true
	}
	return u
}

// clusterNetwork is a ClusterUserDefinedNetwork, perhaps of the name of other networks.
func (p *path) clusterNetwork() cluster.Object {
	d, ok := p.definition().(*cluster.NetworkDefinition)
	if !ok {
		return nil
	}
	u := &cluster.UserNetwork{Name: cluster.Name{Name: d.Name.Name}, UID: d.UID, Created: d.Created, Network: d.Network,
		Invalid: d.Invalid, Protected: true}
	if p.chance(90) {
		selects := p.selector()
		u.Selects = &selects
	}
	if u.Network == nil {
		u.Invalid = "spec.network.topology: wrong"
	} else {
		u.Network.Name, u.Network.UserDefined = names.Defined("", u.Name.Name), true
	}
	return u
}

// request is an interface that a pod asks for, perhaps with an address and a MAC that others may have, too.
func (p *path) request(iface string) cluster.Attachment {
	name := p.name("d", manyDefinitions)
	a := cluster.Attachment{Network: names.Defined(name.Namespace, name.Name), Interface: iface}
	a.Asked = p.asked()
	return a
}

// asked is an address or a MAC that others may have, too, or nothing.
func (p *path) asked() (out cluster.Asked) {
	if p.chance(30) {
		out.IPv4 = netip.MustParsePrefix(fmt.Sprintf("10.99.0.%d/%d", p.r.IntN(20), []int{28, 32}[p.r.IntN(2)]))
	}
	if p.chance(20) {
		out.MAC = ipnet.MAC{2, 5: byte(p.r.IntN(3))}
	}
	if p.chance(20) {
		out.Claim = fmt.Sprintf("c%d", p.r.IntN(manyClaims))
	}
	if p.chance(5) {
		out.Unserved = "default-route"
	}
	return out
}

const manyClaims = 3

// ipamClaim is an IPAMClaim, perhaps with addresses that others have, or that its network has not.
func (p *path) ipamClaim() cluster.Object {
	c := &cluster.IPAMClaim{Name: p.name("c", manyClaims), UID: p.uid(), Created: p.clock,
		Network: fmt.Sprintf("d%d", p.r.IntN(manyDefinitions))}
	if old, ok := p.objects[c.Ref()].(*cluster.IPAMClaim); ok && p.chance(70) {
		*c = *old
	}
	if p.chance(20) {
		c.IPs = []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.99.0.%d/28", p.r.IntN(20))),
			netip.MustParsePrefix("fd99::5/64")}[:1+p.r.IntN(2)]
		c.Status = fmt.Sprint(c.IPs)
	}
	return c
}

// addrOf is most often an address that a pod has in the cluster's own network, and otherwise another one.
func (p *path) addrOf(pod cluster.Name, otherwise netip.Addr) netip.Addr {
	o, ok := p.objects[cluster.Ref{Kind: cluster.KindPod, Name: pod}].(*cluster.Pod)
	if !ok || p.chance(10) {
		return otherwise
	}
	net, err := annotation.ParsePodNetworks(o.Annotated)
	if err != nil || len(net.IPs) == 0 {
		return otherwise
	}
	return net.IPs[p.r.IntN(len(net.IPs))].Addr()
}
