package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/service"
)

// Service is an explained service.
type Service struct {
	Name     string   `json:"service"` // "namespace/name"
	Type     string   `json:"type"`
	Ports    []Port   `json:"ports"`
	Notes    []string `json:"notes"`    // "field: what it comes to"
	Problems []string `json:"problems"` // what is wrong with the service and its EndpointSlices
	Rows     Rows     `json:"rows"`
}

// Port is one port of a service in one address family.
type Port struct {
	Name      string     `json:"name"`
	Protocol  string     `json:"protocol"`
	Port      uint16     `json:"port"`
	Family    string     `json:"family"` // IPv4 or IPv6
	Local     bool       `json:"local"`  // internalTrafficPolicy Local: clients have the endpoints of their own node
	VIPs      []VIP      `json:"vips"`
	Backends  []string   `json:"backends"` // "address:port" for all clients; if empty, connections are rejected
	Clients   []Clients  `json:"clients"`  // groups of clients, if their backends differ
	Hints     []string   `json:"hints"`    // why hints of endpoints are not followed
	Endpoints []Endpoint `json:"endpoints"`
}

// VIP is an address and port of the service.
type VIP struct {
	Address string `json:"address"` // "address:port"
	From    string `json:"from"`    // the field that has it
	Served  bool   `json:"served"`
	Why     string `json:"why,omitempty"` // why it is not served
}

// Endpoint is an endpoint of the service in the port's address family. In says whether it is a backend.
type Endpoint struct {
	Address  string   `json:"address"` // "address:port", or the address of an endpoint without the port
	In       bool     `json:"in"`
	Serves   []string `json:"serves,omitempty"` // the groups of Port.Clients that it serves
	Why      string   `json:"why"`
	Slice    string   `json:"endpointSlice"`
	Pod      string   `json:"pod,omitempty"`
	Node     string   `json:"node,omitempty"`
	Zone     string   `json:"zone,omitempty"`
	ForZones string   `json:"forZones,omitempty"`
	ForNodes string   `json:"forNodes,omitempty"`
	Checked  string   `json:"checkedFrom,omitempty"` // source address of OVN's health checks, "" without any
}

// OfService explains a service of the cluster. problems are those of the whole
// cluster. A service that is not there is an error that says what is.
func OfService(c *core.Core, n cluster.Name, problems []cluster.Problem) (*Service, error) {
	s := c.State
	svc := s.Services[n]
	if svc == nil {
		return nil, unknown(s, n)
	}
	out := &Service{Name: n.String(), Type: string(svc.Type), Ports: []Port{}, Notes: []string{}, Problems: []string{}}
	network, _ := s.ServedIn(svc) // problems has why it is none
	all, strangers := s.SlicesIn(network, n)
	eps, _ := svc.Within(s.Config.Services, all) // problems has how many are left out
	addrs, outside := svc.AddressesIn(network, s.Config.Services, index.TakenOf(s)), svc.OutsidePorts()
	for i, p := range svc.Ports {
		for _, is4 := range []bool{true, false} {
			for _, local := range []bool{true, false} {
				if vips := (answered{s, svc, addrs, is4, local}).vips(p, outside[i]); len(vips) > 0 {
					out.Ports = append(out.Ports, port(s, p, is4, local, eps))
					out.Ports[len(out.Ports)-1].VIPs = vips
				}
			}
		}
	}
	unchecked := noteChecks(s, svc, out.Ports)
	primary := inPrimary(network, svc, svc.ByExits(s.Config.Services), strangers)
	out.Notes = append(out.Notes, slices.Concat(notes(network, svc, eps), primary, unchecked)...)
	for _, p := range problems {
		if p.Ref == svc.Ref() || slices.ContainsFunc(eps, func(e *cluster.EndpointSlice) bool { return e.Ref() == p.Ref }) {
			out.Problems = append(out.Problems, p.Error())
		}
	}
	rows, _, err := rowsOf(c, service.Owner(n)) // problems has the reports
	out.Rows = rows
	return out, err
}

// Compare tells how the rows of the service are in a database.
func (e *Service) Compare(c *core.Core, v nb.View) error {
	return e.Rows.compare(c, service.Owner(cluster.ParseName(e.Name)), v)
}

// unknown is the error for a service that does not exist.
func unknown(s *cluster.State, n cluster.Name) error {
	const most = 8
	var there []string
	for m := range s.Services {
		if m.Namespace == n.Namespace {
			there = append(there, m.Name)
		}
	}
	slices.Sort(there)
	switch {
	case len(there) == 0:
		return fmt.Errorf("there is no Service %s: namespace %s has none", n, n.Namespace)
	case len(there) > most:
		there = append(there[:most], "...")
	}
	return fmt.Errorf("there is no Service %s: namespace %s has %s", n, n.Namespace, strings.Join(there, ", "))
}

// answered is the addresses of a service in a family, with internalTrafficPolicy Local or without.
type answered struct {
	state      *cluster.State
	svc        *cluster.Service
	addrs      []cluster.ServiceAddr
	is4, local bool
}

// vips lists the VIPs of a port, which the nodes' kernels forward to another port of the ClusterIPs.
func (x answered) vips(p cluster.ServicePort, outside uint16) []VIP {
	var out []VIP
	add := func(a cluster.ServiceAddr, number uint16, from string) {
		v := cluster.VIP{Addr: netip.AddrPortFrom(a.Addr, number), Protocol: p.Protocol}
		vip := VIP{Address: v.Addr.String(), From: from, Served: true}
		if h := index.VIPsOf(x.state).Holder(v); a.Withheld.Served() && h != x.svc {
			vip.Served, vip.Why = false, taken(x.svc, h, a.Addr)
		} else if a.Withheld != cluster.NotWithheld {
			vip.Served, vip.Why = false, string(a.Withheld)
		}
		out = append(out, vip)
	}
	for _, a := range x.addrs {
		if a.Addr.Is4() != x.is4 {
			continue
		}
		if x.svc.LocalAt(a) == x.local {
			add(a, p.Port, string(a.Origin))
		}
		if outside != p.Port && !x.local && a.Origin == cluster.FromClusterIPs {
			add(a, outside, string(a.Origin)+", to which the nodes' kernels send packets from outside the cluster")
		}
	}
	return out
}

// port explains the backends of a port in a family, with internalTrafficPolicy Local or without.
func port(s *cluster.State, p cluster.ServicePort, is4, local bool, eps []*cluster.EndpointSlice) Port {
	out := Port{
		Name: p.Name, Protocol: string(p.Protocol), Port: p.Port, Family: family(is4), Local: local,
		Backends: []string{}, Clients: []Clients{}, Hints: []string{}, Endpoints: []Endpoint{},
	}
	choice := cluster.ChooseFor(local, p, is4, eps)
	out.Clients = append(out.Clients, clients(s, choice)...)
	if len(out.Clients) == 0 {
		out.Backends = append(out.Backends, texts(choice.Backends)...)
	}
	out.Hints = append(out.Hints, hints(s, choice, p, is4, eps)...)
	for _, e := range eps {
		for _, ep := range e.Endpoints {
			if ep.Addr.Is4() == is4 {
				out.Endpoints = append(out.Endpoints, out.endpoints(s, choice, numbered{e, &ep, cluster.Numbers(p, e)})...)
			}
		}
	}
	return out
}

// taken explains why another service has the address.
func taken(svc, holder *cluster.Service, a netip.Addr) string {
	switch {
	case slices.Contains(holder.ClusterIPs, a) && !slices.Contains(svc.ClusterIPs, a):
		return fmt.Sprintf("it is the cluster IP of Service %s", holder.Name)
	case holder.Created < svc.Created:
		return fmt.Sprintf("it belongs to Service %s, which is older", holder.Name)
	}
	return fmt.Sprintf("it belongs to Service %s, whose name sorts first", holder.Name)
}

func family(is4 bool) string {
	if is4 {
		return "IPv4"
	}
	return "IPv6"
}

// numbered is an endpoint with the port numbers that its slice has for a service port.
type numbered struct {
	slice   *cluster.EndpointSlice
	ep      *cluster.Endpoint
	numbers []uint16
}

// endpoints explains an endpoint, once for each of its port numbers.
func (p Port) endpoints(s *cluster.State, choice cluster.Choice, n numbered) []Endpoint {
	ep := n.ep
	one := Endpoint{
		Slice: n.slice.Name.Name, Pod: ep.Pod, Node: ep.Node, Zone: ep.Zone, ForZones: ep.ForZones, ForNodes: ep.ForNodes,
	}
	if len(n.numbers) == 0 {
		one.Address, one.Why = ep.Addr.String(), fmt.Sprintf("its slice has no %s port named %q", p.Protocol, p.Name)
		return []Endpoint{one}
	}
	out := make([]Endpoint, len(n.numbers))
	for i, number := range n.numbers {
		at := netip.AddrPortFrom(ep.Addr, number)
		out[i] = one
		out[i].Address = at.String()
		if out[i].In = ep.Conditions.Has(choice.Conditions) && !choice.Local; len(p.Clients) > 0 {
			out[i].Serves = serves(p.Clients, at)
			out[i].In = len(out[i].Serves) > 0 && usable(ep.Conditions, choice)
		}
		out[i].Why = why(out[i].In, ep, at, choice)
		if !out[i].In && usable(ep.Conditions, choice) {
			out[i].Why += unservedReason(s, ep, at, choice)
		}
	}
	return out
}

// usable reports whether an endpoint may serve any client.
func usable(c cluster.Conditions, choice cluster.Choice) bool {
	if !choice.Local {
		return c.Has(choice.Conditions)
	}
	return slices.ContainsFunc(cluster.Stages(), c.Has)
}

// why describes the state of an endpoint and its consequence.
func why(in bool, ep *cluster.Endpoint, at netip.AddrPort, choice cluster.Choice) string {
	c, before, where := ep.Conditions, choice.Backends, ""
	if choice.Local {
		before, where = choice.Nodes[ep.Node], " on its node"
	}
	if c.Has(cluster.Ready) {
		return "ready"
	}
	text := "not ready, not serving"
	if c.Has(cluster.Serving) {
		text = "not ready, serving"
	}
	if c.Has(cluster.Terminating) {
		text += ", terminating"
	}
	switch {
	case in:
		return text + ": it serves because no endpoint is ready" + where
	case len(before) > 0 && !slices.Contains(before, at) && c.Has(cluster.Serving|cluster.Terminating):
		return text + ": other endpoints are ready" + where
	}
	return text
}

// unservedReason explains why a usable endpoint serves no client.
func unservedReason(s *cluster.State, ep *cluster.Endpoint, at netip.AddrPort, choice cluster.Choice) string {
	switch {
	case !choice.Local:
		return ", but its hints name no zone or node that exists"
	case ep.Node == "":
		return ", but its slice names no node"
	case s.Nodes[ep.Node] == nil && slices.Contains(choice.Nodes[ep.Node], at):
		return ", but there is no Node " + ep.Node
	}
	return ""
}
