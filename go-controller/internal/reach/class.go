package reach

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Class is pods that no policy can tell apart, or addresses outside the cluster that no policy can tell apart.
type Class struct {
	Name string   `json:"name"`           // "shop app=web", "outside" or "outside (as 192.0.2.1)"
	Pods []string `json:"pods,omitempty"` // "shop/web-0"

	members []*cluster.Pod
	outside netip.Addr // one of the addresses
	listed  bool       // among what was asked for
}

// classifier sorts pods and addresses into classes.
type classifier struct {
	*Cluster
	apart      []string // namespaces whose pods are not in one class with those of others
	selections []*index.Selection
	keys       map[string]bool // of labels that selectors ask for
	ports      []cluster.PortName
	blocks     [][]netip.Prefix // of ipBlocks and networks
	selected   map[selectable]string
}

// selectable is what selectors see of a pod.
type selectable struct {
	namespace string
	labels    cluster.Labels
}

func newClassifier(c *Cluster, apart []string) *classifier {
	x := &classifier{Cluster: c, apart: apart, keys: map[string]bool{}, selected: map[selectable]string{}}
	all := append(index.PoliciesOf(c.State).Selections(), index.FurtherPoliciesOf(c.State).Selections()...)
	x.selections = slices.SortedFunc(slices.Values(all), func(a, b *index.Selection) int {
		return cmp.Compare(a.Hash, b.Hash)
	})
	for _, s := range x.selections {
		for _, key := range s.Selector.Pods.Keys() {
			x.keys[key] = true
		}
		for _, n := range s.PortNames() {
			if !slices.Contains(x.ports, n) {
				x.ports = append(x.ports, n)
			}
		}
	}
	for _, p := range c.State.NetworkPolicies {
		for _, r := range slices.Concat(p.Ingress.Rules, p.Egress.Rules) {
			x.addBlocks(r)
		}
	}
	for _, p := range c.State.MultiNetworkPolicies {
		for _, r := range slices.Concat(p.Ingress.Rules, p.Egress.Rules) {
			x.addBlocks(r)
		}
	}
	for _, p := range c.State.ClusterNetworkPolicies {
		for _, r := range slices.Concat(p.Ingress, p.Egress) {
			x.addBlocks(r.PolicyRule)
		}
	}
	slices.SortFunc(x.blocks, func(a, b []netip.Prefix) int {
		return slices.CompareFunc(a, b, func(p, q netip.Prefix) int { return cmp.Compare(p.String(), q.String()) })
	})
	return x
}

func (x *classifier) addBlocks(r cluster.PolicyRule) {
	for _, peer := range r.Peers {
		block := peer.Addresses
		if peer.Domain != "" {
			accepted, _ := index.DomainNamesOf(x.State).Addresses(x.State, peer.Domain)
			for _, a := range accepted {
				block = append(block, ipnet.Single(a))
			}
		}
		if len(block) > 0 {
			x.blocks = append(x.blocks, block)
		}
	}
}

// seen is what selectors and tenants make of a pod's labels and namespace.
func (x *classifier) seen(p *cluster.Pod) string {
	k := selectable{p.Name.Namespace, p.Labels}
	if out, ok := x.selected[k]; ok {
		return out
	}
	var b strings.Builder
	b.WriteString(index.TenantsOf(x.State).Of(p.Name.Namespace) + " ")
	for _, s := range x.selections {
		fmt.Fprintf(&b, "%t ", selects(x.State, s.Selector, p))
	}
	x.selected[k] = b.String()
	return b.String()
}

// within is what ipBlocks make of an address.
func (x *classifier) within(a netip.Addr) string {
	var b strings.Builder
	for _, block := range x.blocks {
		fmt.Fprintf(&b, "%t ", slices.ContainsFunc(block, func(p netip.Prefix) bool { return p.Contains(a) }))
	}
	return b.String()
}

// key is what policies can tell a pod by; ok is false for a pod that connects to nobody, because it has no address.
func (x *classifier) key(name cluster.Name) (key string, ok bool) {
	p := x.State.Pods[name]
	if p == nil || p.HostNetwork {
		return "", false
	}
	ends, err := x.podEnds(name)
	if err != nil {
		return "", false
	}
	key = x.seen(p)
	for _, e := range ends {
		if key += x.within(e.Addr); e.in != nil {
			key += " " + string(e.in.Name) + " "
		}
	}
	if x.opens(name) {
		own, _ := x.ownEnds(name) // it has an address in its network, so it has one here
		for _, e := range own {
			key += x.within(e.Addr)
		}
		key += x.State.Opens(p).String() + " "
	}
	for _, n := range x.ports {
		number, _ := p.Ports.Number(n)
		key += fmt.Sprint(number, " ")
	}
	return key, true
}

// classes lists the classes of pods, then those of addresses outside, sorted by name. With an older cluster they are
// those that no policy of either can tell apart, of pods that are in both.
func (x *classifier) classes(old *classifier) []*Class {
	of := map[string]*Class{}
	for name, p := range x.State.Pods {
		key, ok := x.key(name)
		if old != nil && ok {
			var before string
			before, ok = old.key(name)
			key += " " + before
		}
		if !ok {
			continue
		}
		listed := len(x.apart) == 0
		if slices.Contains(x.apart, name.Namespace) {
			key, listed = key+name.Namespace, true
		}
		if of[key] == nil {
			of[key] = &Class{listed: listed}
		}
		of[key].members = append(of[key].members, p)
	}
	out := slices.Collect(maps.Values(of))
	for _, c := range out {
		x.describe(c)
	}
	slices.SortFunc(out, func(a, b *Class) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Pods[0], b.Pods[0]))
	})
	unique(out)
	return append(out, x.outsiders()...)
}

// describe names a class of pods by their namespaces and the labels that all of them have and some selector asks for.
func (x *classifier) describe(c *Class) {
	const most = 3
	slices.SortFunc(c.members, func(a, b *cluster.Pod) int { return cluster.CompareNames(a.Name, b.Name) })
	namespaces, shared := map[string]bool{}, map[string]string{}
	for k, v := range c.members[0].Labels.All() {
		if x.keys[k] {
			shared[k] = v
		}
	}
	for _, p := range c.members {
		c.Pods = append(c.Pods, p.Name.String())
		namespaces[p.Name.Namespace] = true
		maps.DeleteFunc(shared, func(k, v string) bool {
			w, ok := p.Labels.Get(k)
			return !ok || w != v
		})
	}
	names := slices.Sorted(maps.Keys(namespaces))
	if len(names) > most {
		names = append(names[:most-1], fmt.Sprintf("%d more", len(names)-most+1))
	}
	c.Name = strings.Join(names, ", ")
	for _, k := range slices.Sorted(maps.Keys(shared)) {
		c.Name += " " + k + "=" + shared[k]
	}
}

// unique adds a pod's name to names that several classes have.
func unique(classes []*Class) {
	count := map[string]int{}
	for _, c := range classes {
		count[c.Name]++
	}
	for _, c := range classes {
		if count[c.Name] > 1 {
			c.Name += " (as " + c.Pods[0] + ")"
		}
	}
}

// outsiders lists the classes of addresses outside: for each family those that no ipBlock has, and those that the same
// ones have.
func (x *classifier) outsiders() []*Class {
	var ranges []netip.Prefix
	for _, b := range x.blocks {
		ranges = append(ranges, b...)
	}
	ipnet.Sort(ranges)
	candidates := []netip.Addr{netip.AddrFrom4([4]byte{203, 0, 113, 1}), netip.AddrFrom4([4]byte{198, 51, 100, 1}),
		netip.AddrFrom4([4]byte{192, 0, 2, 1}), netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1})}
	for _, p := range ranges {
		candidates = append(candidates, p.Addr(), p.Addr().Next(), ipnet.Last(p).Next())
	}
	var out []*Class
	seen := map[string]bool{}
	for _, a := range candidates {
		blocks := x.within(a)
		key := fmt.Sprint(a.Is4(), blocks)
		if seen[key] || !x.free(a) {
			continue
		}
		seen[key] = true
		c := &Class{Name: fmt.Sprintf("outside (as %s)", a), outside: a, listed: len(x.apart) == 0}
		switch {
		case strings.Contains(blocks, "true"):
		case a.Is6() && x.State.Config.HasIPv4():
			c.Name = "outside IPv6"
		default:
			c.Name = "outside"
		}
		out = append(out, c)
	}
	return out
}

// free is true for an address that nobody of the cluster can have.
func (x *classifier) free(a netip.Addr) bool {
	named := a.Is4() && a.IsLinkLocalUnicast() && strings.Contains(x.within(a), "true") // a cloud's metadata service
	if !a.IsGlobalUnicast() && !named || x.at(a).Name != "outside" || a.Is4() && !x.State.Config.HasIPv4() ||
		a.Is6() && !x.State.Config.HasIPv6() {
		return false
	}
	for _, n := range x.State.Nodes {
		if slices.Contains(n.Reported(), a) {
			return false
		}
	}
	own := x.State.ServiceRanges()
	for _, s := range x.State.Config.Subnets {
		own = append(own, s.CIDR)
	}
	return !slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Contains(a) })
}
