package index

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// DomainNameAddresses is the subject of topics about the addresses that rules accept for a name in DNS; the key's name
// is the name.
const DomainNameAddresses cluster.Subject = "addresses of a name in DNS"

// DomainNames answers which names in DNS rules have, and which of their addresses these rules accept.
type DomainNames struct {
	policies cluster.NameSets[string]     // by name: those that have it
	hashes   map[string]string            // the names, by hash
	named    map[string][]string          // by policy: its names, each once
	holders  cluster.NameSets[netip.Addr] // by address: the names in use that have it
	held     map[string][]netip.Addr      // by name in use: its addresses in holders
	nodes    map[string][]netip.Addr      // addresses, by node
	onNodes  cluster.NameSets[netip.Addr] // by address: the nodes that have it
	server   []netip.Addr                 // of the API server
}

func newDomainNames() *DomainNames {
	return &DomainNames{policies: cluster.NameSets[string]{}, hashes: map[string]string{}, named: map[string][]string{},
		holders: cluster.NameSets[netip.Addr]{}, held: map[string][]netip.Addr{}, nodes: map[string][]netip.Addr{},
		onNodes: cluster.NameSets[netip.Addr]{}}
}

// DomainNamesOf is the index of a State.
func DomainNamesOf(s *cluster.State) *DomainNames { return of(s, newDomainNames) }

// DomainNameText says which name a selector of its addresses is about.
func DomainNameText(name string) string { return "domain name " + name }

// DomainNameHash is the hash by which the addresses of a name go.
func DomainNameHash(name string) string {
	sum := sha1.Sum([]byte(DomainNameText(name)))
	return hex.EncodeToString(sum[:10])
}

// List lists the names that rules have, sorted.
func (x *DomainNames) List() []string { return slices.Sorted(maps.Keys(x.policies)) }

// Unknown lists the names that rules have and of which nothing is known, sorted.
func (x *DomainNames) Unknown(s *cluster.State) []string {
	return slices.DeleteFunc(x.List(), func(name string) bool { return s.Object(cluster.DomainNameRef(name)) != nil })
}

// Hashed is the name of a hash; "" when no rule has it.
func (x *DomainNames) Hashed(hash string) string { return x.hashes[hash] }

// Of lists the names that the rules of a policy have, sorted, each once.
func (x *DomainNames) Of(policy string) []string { return x.named[policy] }

// Refused is an address of a name that rules do not accept, with the reason.
type Refused struct {
	Addr netip.Addr
	Why  string
}

// Addresses lists the addresses that rules accept for a name, and those that they do not. Whoever writes the records of
// a name decides about its addresses, so they must not open anything inside of the cluster.
func (x *DomainNames) Addresses(s *cluster.State, name string) (accepted []netip.Addr, refused []Refused) {
	d, _ := s.Object(cluster.DomainNameRef(name)).(*cluster.DomainName)
	if d == nil {
		return nil, nil
	}
	for _, a := range d.Addrs {
		if why := x.inside(s, a); why != "" {
			refused = append(refused, Refused{a, why})
		} else {
			accepted = append(accepted, a)
		}
	}
	return accepted, refused
}

// inside is whose an address is that no rule accepts by name; "" for one outside.
func (x *DomainNames) inside(s *cluster.State, a netip.Addr) string {
	if v4, ok := carried(a); ok {
		if why := x.inside(s, v4); why != "" {
			return why
		}
	}
	switch {
	case !a.IsGlobalUnicast() || a.Is4In6() || a.Is4() && a.As4()[0] == 0 || a.Zone() != "":
		return "no address of another host"
	case len(x.onNodes[a]) > 0:
		return "of Node " + x.onNodes[a].Sorted()[0].Name
	case slices.Contains(x.server, a):
		return "of the API server"
	}
	for _, p := range s.Networks[names.Own].Subnets {
		if p.CIDR.Contains(a) {
			return fmt.Sprintf("in the cluster subnet %s", p.CIDR)
		}
	}
	for _, p := range s.Networks[names.Own].JoinSubnets {
		if p.Contains(a) {
			return fmt.Sprintf("in the join subnet %s", p)
		}
	}
	for _, p := range s.ServiceRanges() {
		if p.Contains(a) {
			return fmt.Sprintf("in the range of services %s", p)
		}
	}
	if own := netip.PrefixFrom(netip.MustParseAddr(names.HairpinSNAT6), ownBits).Masked(); own.Contains(a) {
		return fmt.Sprintf("in the network's own range %s", own)
	}
	return ""
}

// carried is the IPv4 address that packets to an IPv6 address may reach: by NAT64 with the well-known prefix (RFC 6052
// section 2.1), by 6to4 (RFC 3056), or as an IPv4-compatible address (RFC 4291 section 2.5.5.1).
func carried(a netip.Addr) (v4 netip.Addr, ok bool) {
	if !a.Is6() {
		return a, false
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return a, false
}

// ownBits is the length of the range of IPv6 addresses that nodes and services use among themselves. That of IPv4 is
// link-local.
const ownBits = 112

// Kinds implements cluster.Index.
func (*DomainNames) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindClusterNetworkPolicy, cluster.KindDomainName, cluster.KindNode,
		cluster.KindEndpointSlice, cluster.KindServiceCIDR}
}

// Before implements cluster.Index.
func (*DomainNames) Before(*cluster.State, cluster.Ref) {}

// After implements cluster.Index.
func (x *DomainNames) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	t := &changed{}
	switch r.Kind {
	case cluster.KindClusterNetworkPolicy:
		x.policyChanged(s, r.Name.Name, t)
	case cluster.KindDomainName:
		if len(x.policies[r.Name.Name]) > 0 {
			x.hold(s, r.Name.Name)
			x.written(r.Name.Name, t)
		}
	case cluster.KindNode:
		x.nodeChanged(s, r.Name, t)
	case cluster.KindEndpointSlice:
		if r == apiServers() {
			x.serverMoved(s, t)
		}
	case cluster.KindServiceCIDR:
		for name := range x.policies {
			x.written(name, t)
		}
	}
	return t.topics
}

// written notes that other addresses of a name are accepted now. Its policies report which are not.
func (x *DomainNames) written(name string, t *changed) {
	t.add(DomainNameAddresses, cluster.Name{Name: name})
	for policy := range x.policies[name] {
		t.add(PolicyWritten, policy)
	}
}

func (x *DomainNames) policyChanged(s *cluster.State, policy string, t *changed) {
	old, now := x.named[policy], s.ClusterNetworkPolicies[policy].DomainNames()
	slices.Sort(now)
	now = slices.Compact(now)
	if x.named[policy] = now; len(now) == 0 {
		delete(x.named, policy)
	}
	for _, name := range now {
		used := len(x.policies[name]) > 0
		if x.policies.Put(name, cluster.Name{Name: policy}, true); !used {
			x.hashes[DomainNameHash(name)] = name
			x.hold(s, name)
			x.written(name, t)
		}
	}
	for _, name := range old {
		if slices.Contains(now, name) {
			continue
		}
		if x.policies.Put(name, cluster.Name{Name: policy}, false); len(x.policies[name]) == 0 {
			delete(x.hashes, DomainNameHash(name))
			x.hold(s, name)
			x.written(name, t)
		}
	}
}

// hold records the addresses of a name while a rule has it.
func (x *DomainNames) hold(s *cluster.State, name string) {
	n := cluster.Name{Name: name}
	for _, a := range x.held[name] {
		x.holders.Put(a, n, false)
		if v4, ok := carried(a); ok {
			x.holders.Put(v4, n, false)
		}
	}
	delete(x.held, name)
	d, ok := s.Object(cluster.DomainNameRef(name)).(*cluster.DomainName)
	if !ok || len(x.policies[name]) == 0 {
		return
	}
	x.held[name] = d.Addrs
	for _, a := range d.Addrs {
		x.holders.Put(a, n, true)
		if v4, ok := carried(a); ok {
			x.holders.Put(v4, n, true)
		}
	}
}

// nodeChanged notes the names whose addresses became those of a node, or no longer are.
func (x *DomainNames) nodeChanged(s *cluster.State, node cluster.Name, t *changed) {
	old, now := x.nodes[node.Name], []netip.Addr(nil)
	if n := s.Nodes[node.Name]; n != nil {
		now = append(n.Reported(), gatewayAddrs(n)...)
	}
	if slices.Equal(old, now) {
		return
	}
	if x.nodes[node.Name] = now; len(now) == 0 {
		delete(x.nodes, node.Name)
	}
	for _, a := range old {
		x.onNodes.Put(a, node, false)
	}
	for _, a := range now {
		x.onNodes.Put(a, node, true)
	}
	x.owned(t, old, now)
}

// owned notes the names that have any of these addresses.
func (x *DomainNames) owned(t *changed, lists ...[]netip.Addr) {
	for _, a := range slices.Concat(lists...) {
		for name := range x.holders[a] {
			x.written(name.Name, t)
		}
	}
}

// serverMoved notes the names whose addresses became those of an API server, or no longer are.
func (x *DomainNames) serverMoved(s *cluster.State, t *changed) {
	old := x.server
	if x.server = apiServerAddrs(s); !slices.Equal(old, x.server) {
		x.owned(t, old, x.server)
	}
}
