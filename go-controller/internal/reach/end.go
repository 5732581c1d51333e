package reach

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// End is one end of a connection.
type End struct {
	Name string     `json:"name"` // "pod/shop/web-0", "node/n1" or "outside"
	Addr netip.Addr `json:"address"`

	pod  *cluster.Pod     // nil for what policies do not select
	node string           // where the pod runs, or whose host it is; "" outside
	port string           // its logical port, "" when routers lead there
	in   *cluster.Network // the primary network that it is in; nil for the cluster's own
}

// String is "pod/shop/web-0 (10.128.0.3)".
func (e End) String() string {
	if !e.Addr.IsValid() {
		return e.Name
	}
	return fmt.Sprintf("%s (%s)", e.Name, e.Addr)
}

// podEnds is a pod's addresses where it connects to others: in its primary network, or else in the cluster's own. Their
// error says why the pod has none.
func (c *Cluster) podEnds(name cluster.Name) ([]End, error) {
	out, err := c.ownEnds(name)
	if p := c.State.Pods[name]; err == nil && !p.HostNetwork && c.State.Locked(name) {
		return c.primaryEnds(p)
	}
	return out, err
}

// ownEnds is a pod's addresses in the cluster's own network.
func (c *Cluster) ownEnds(name cluster.Name) ([]End, error) {
	p := c.State.Pods[name]
	switch {
	case p == nil:
		return nil, c.noPod(name)
	case p.Finished:
		return nil, fmt.Errorf("finding the address of Pod %s: it has finished, and its address is free", name)
	case p.Node == "":
		return nil, fmt.Errorf("finding the address of Pod %s: it is on no node yet (spec.nodeName), so it has none", name)
	case p.HostNetwork:
		return c.nodeEnds(p.Node)
	case !c.State.HasSwitch(p.Node):
		return nil, fmt.Errorf("finding the address of Pod %s: its Node %s does not exist or has no subnet", name, p.Node)
	}
	var out []End
	for _, a := range cluster.PodAddrs(c.State.PodNetworks[cluster.PodPort{Pod: name}]) {
		out = append(out, End{Name: "pod/" + name.String(), Addr: a, pod: p, node: p.Node,
			port: names.Own.LogicalPort(name.Namespace, name.Name, "")})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("finding the address of Pod %s: the subnets of Node %s have none left", name, p.Node)
	}
	return out, nil
}

// noPod is the error for a pod that does not exist.
func (c *Cluster) noPod(name cluster.Name) error {
	const most = 8
	var there []string
	for n := range c.State.Pods {
		if n.Namespace == name.Namespace {
			there = append(there, n.Name)
		}
	}
	slices.Sort(there)
	switch {
	case len(there) == 0:
		return fmt.Errorf("there is no Pod %s: namespace %s has none", name, name.Namespace)
	case len(there) > most:
		there = append(there[:most], "...")
	}
	return fmt.Errorf("there is no Pod %s: namespace %s has %s", name, name.Namespace, strings.Join(there, ", "))
}

// nodeEnds is a node's addresses as pods see them: those of its management port first, from which the node connects to
// pods, then its own.
func (c *Cluster) nodeEnds(name string) ([]End, error) {
	n := c.State.Nodes[name]
	if n == nil {
		return nil, fmt.Errorf("there is no Node %s", name)
	}
	var out []End
	for _, p := range c.State.NodeSubnets[name] {
		if a, ok := subnet.Management(p); ok {
			out = append(out, End{Name: "node/" + name, Addr: a, node: name, port: names.ManagementPort(name)})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("finding the addresses of Node %s: it has no subnet, so it has no way to pods", name)
	}
	for _, a := range n.Addrs {
		out = append(out, End{Name: "node/" + name, Addr: a, node: name})
	}
	return out, nil
}

// at is who has an address.
func (c *Cluster) at(a netip.Addr) End {
	if e, ok := c.byAddr[a]; ok {
		return e
	}
	return End{Name: "outside", Addr: a}
}

// addresses maps addresses to who has them.
func (c *Cluster) addresses() map[netip.Addr]End {
	out := map[netip.Addr]End{}
	add := func(ends []End, _ error) { // who has no address is not found by it
		for _, e := range ends {
			out[e.Addr] = e
		}
	}
	for n := range c.State.Nodes {
		add(c.nodeEnds(n))
	}
	for n, p := range c.State.Pods {
		if p.WantsNetwork() {
			add(c.ownEnds(n))
		}
	}
	return out
}

// namedEnds is the addresses of a name in DNS, as far as they are known. Nobody asks DNS here: a policy accepts what a
// master has found.
func (c *Cluster) namedEnds(name string) (out []End, notes []string, err error) {
	d, known := c.State.Object(cluster.DomainNameRef(name)).(*cluster.DomainName)
	if known {
		for _, a := range d.Addrs {
			if a.Is4() && c.State.Config.HasIPv4() || a.Is6() && c.State.Config.HasIPv6() {
				out = append(out, c.at(a))
			}
		}
	}
	used := slices.Contains(index.DomainNamesOf(c.State).List(), name)
	switch {
	case len(out) > 0 && c.database != nil:
		notes = append(notes, fmt.Sprintf("%s has the addresses that the database has for it: nobody asks DNS here", name))
	case len(out) > 0:
	case !used && c.database != nil:
		return nil, nil, fmt.Errorf("finding the addresses of %s: no ClusterNetworkPolicy names it, so the master does not "+
			"ask for it: want an address", name)
	case c.database != nil:
		return nil, nil, fmt.Errorf("finding the addresses of %s: the database has none", name)
	default:
		return nil, nil, fmt.Errorf("finding the addresses of %s: they are not known here: want --hosts FILE, or an address",
			name)
	}
	return out, notes, nil
}

// clients is who connects, of a side.
func (c *Cluster) clients(s Side) (out []End, notes []string, err error) {
	if out, notes, err = c.sideEnds(s); err != nil || s.Kind == Address {
		return out, notes, err
	}
	// A node connects to pods from its management port.
	return slices.DeleteFunc(out, func(e End) bool { return e.port == "" }), notes, nil
}

// sideEnds is the addresses of a side that is no Service.
func (c *Cluster) sideEnds(s Side) (out []End, notes []string, err error) {
	switch s.Kind {
	case Pod:
		if out, err = c.podEnds(s.Name); err != nil {
			return nil, nil, err
		}
		if p := c.State.Pods[s.Name]; p.HostNetwork {
			notes = append(notes, fmt.Sprintf("Pod %s is of the host network: no policy selects it, and to policies it is "+
				"node/%s", s.Name, p.Node))
		} else if p.Annotated == "" && c.database != nil {
			notes = append(notes, fmt.Sprintf("Pod %s has no address yet: it is asked about with addresses that are free now",
				s.Name))
		}
		return out, notes, nil
	case Node:
		out, err = c.nodeEnds(s.Name.Name)
		return out, nil, err
	case DNS:
		return c.namedEnds(s.Name.Name)
	case Address:
		if s.Addr.Is4() && !c.State.Config.HasIPv4() || s.Addr.Is6() && !c.State.Config.HasIPv6() {
			return nil, nil, fmt.Errorf("%s: the pods of this cluster have no addresses of its family", s.Addr)
		}
		e := c.at(s.Addr)
		for _, of := range c.State.Config.Subnets {
			if of.CIDR.Contains(s.Addr) && e.Name == "outside" {
				notes = append(notes, fmt.Sprintf("%s is in the cluster subnet %s, and no pod has it", s.Addr, of.CIDR))
			}
		}
		return []End{e}, notes, nil
	}
	return nil, nil, errors.New("a Service has no addresses of its own as a client")
}
