package reach

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
)

// holder is the Service that answers at the address and port of a question, nil when none does.
func (c *Cluster) holder(q Question) *cluster.Service {
	protocol := q.Port.Protocol
	if protocol == "" {
		protocol = cluster.TCP
	}
	at := netip.AddrPortFrom(q.To.Addr, q.Port.Number)
	return index.VIPsOf(c.State).Holder(cluster.VIP{Addr: at, Protocol: protocol})
}

// asker lists the ways to connect to the backends of a Service.
type asker struct {
	*Cluster
	svc    *cluster.Service
	served *cluster.Network // where clients reach it; nil for nowhere, and none says why
	none   string
	slices []*cluster.EndpointSlice
	out    []connection
}

// toService lists the ways to connect to a Service, one for each backend. A client within the cluster connects to a
// ClusterIP. One outside connects to a node, which forwards.
func (c *Cluster) toService(from []End, q Question) ([]connection, error) {
	a := asker{Cluster: c, svc: c.State.Services[q.To.Name]}
	if a.svc == nil {
		return nil, fmt.Errorf("there is no Service %s", q.To.Name)
	}
	a.served, a.none = c.State.ServedIn(a.svc)
	endpoints, _ := c.State.SlicesIn(a.served, q.To.Name)
	a.slices, _ = a.svc.Within(c.State.Config.Services, endpoints)
	if a.svc.Headless && !c.State.Locked(a.svc.Name) {
		err := a.toEndpoints(from, q)
		return a.out, err
	}
	ports, err := a.ports(q.Port)
	if err != nil {
		return nil, err
	}
	for _, p := range ports {
		for _, client := range from {
			switch {
			case client.in != nil || c.State.Locked(a.svc.Name):
				a.primary(client, p)
			case client.node != "":
				a.inside(client, p)
			default:
				a.outside(client, p)
			}
		}
	}
	if len(a.out) == 0 {
		return nil, fmt.Errorf("finding an address of Service %s for %s: it has none of that family", q.To.Name, q.From)
	}
	return a.out, nil
}

// ports lists the ports of the Service that a question is about.
func (a *asker) ports(asked Asked) ([]cluster.ServicePort, error) {
	var out []cluster.ServicePort
	var there []string
	for _, p := range a.svc.Ports {
		there = append(there, strings.TrimSpace(fmt.Sprintf("%d/%s %s", p.Port, p.Protocol, p.Name)))
		if (asked.Protocol == "" || asked.Protocol == p.Protocol) && (asked.Number == 0 || asked.Number == p.Port) &&
			(asked.Name == "" || asked.Name == p.Name) {
			out = append(out, p)
		}
	}
	switch {
	case len(there) == 0:
		return nil, fmt.Errorf("finding the ports of Service %s: it has none", a.svc.Name)
	case len(out) == 0:
		return nil, fmt.Errorf("finding port %s of Service %s: it has %s",
			strings.Trim(asked.String(), ":/"), a.svc.Name, strings.Join(there, ", "))
	}
	return out, nil
}

// noEndpoint is why nobody answers.
const noEndpoint = "the Service has no endpoint: the connection is rejected"

// add adds the ways from a client to backends, or that there are none.
func (a *asker) add(way connection, p cluster.ServicePort, backends []netip.AddrPort, none string) {
	if len(backends) == 0 {
		way.to, way.refused = End{Name: "nobody"}, none
		way.asked = []span{{p.Protocol, p.Port, p.Port}}
		a.out = append(a.out, way)
	}
	for _, b := range backends {
		way.to, way.asked = a.member(a.served, b.Addr()), []span{{p.Protocol, b.Port(), b.Port()}}
		a.out = append(a.out, way)
	}
}

// toEndpoints lists the ways to connect to a Service without a ClusterIP. DNS leads to its endpoints, at any port.
func (a *asker) toEndpoints(from []End, q Question) error {
	for _, client := range from {
		for _, slice := range a.slices {
			for _, e := range slice.Endpoints {
				if e.Addr.Is4() != client.Addr.Is4() || !e.Conditions.Has(cluster.Ready) {
					continue
				}
				to := a.at(e.Addr)
				asked, err := portsOf(q.Port, to)
				if err != nil {
					return err
				}
				a.out = append(a.out, connection{from: client, to: to, via: q.To.String(), asked: asked,
					refused: a.apart(client, to)})
			}
		}
	}
	if len(a.out) == 0 {
		return fmt.Errorf("finding the endpoints of Service %s: none of the family of %s is ready", a.svc.Name, q.From)
	}
	return nil
}

// inside adds what a client within the cluster reaches at ClusterIPs of its family.
func (a *asker) inside(client End, p cluster.ServicePort) {
	for _, addr := range a.svc.Addresses(a.State.Config.Services, index.TakenOf(a.State)) {
		if addr.Origin != cluster.FromClusterIPs || !addr.Withheld.Served() || addr.Addr.Is4() != client.Addr.Is4() {
			continue
		}
		at := netip.AddrPortFrom(addr.Addr, p.Port)
		zone := ""
		if n := a.State.Nodes[client.node]; n != nil {
			zone = n.Zone
		}
		choice := cluster.ChooseFor(a.svc.LocalAt(addr), p, addr.Addr.Is4(), a.slices)
		backends, served := choice.For(client.node, zone)
		none := noEndpoint
		if !served {
			none = "internalTrafficPolicy Local: the Service has no endpoint on the client's node, and packets are dropped"
		}
		via := fmt.Sprintf("svc/%s %s/%s", a.svc.Name, at, p.Protocol)
		a.add(connection{from: client, service: at, via: via}, p, backends, none)
	}
}

// outside adds what a client outside the cluster reaches through each node. With externalTrafficPolicy Local, the nodes
// with endpoints forward its packets with its own address, the others none. Otherwise each forwards them with the
// address of its management port.
func (a *asker) outside(client End, p cluster.ServicePort) {
	if p.NodePort == 0 && len(a.svc.ExternalIPs)+len(a.svc.Ingress) == 0 {
		return
	}
	is4 := client.Addr.Is4()
	if a.svc.LocalFromOutside() {
		choice := cluster.ChooseLocal(p, is4, a.slices)
		for _, node := range a.nodes() {
			if backends := choice.Nodes[node.node]; len(backends) > 0 && node.Addr.Is4() == is4 {
				from := End{Name: client.Name, Addr: client.Addr, node: node.node, port: node.port}
				a.add(connection{from: from, via: fmt.Sprintf("svc/%s through %s", a.svc.Name, node.Name)}, p, backends, "")
			}
		}
		return
	}
	outside := a.svc.OutsidePorts()[slices.Index(a.svc.Ports, p)]
	for _, node := range a.nodes() {
		for _, ip := range a.svc.ClusterIPs {
			if ip.Is4() == is4 && node.Addr.Is4() == is4 {
				choice := cluster.Choose(p, is4, a.slices)
				backends, _ := choice.For(node.node, a.State.Nodes[node.node].Zone)
				a.add(connection{from: node, client: client.String(), service: netip.AddrPortFrom(ip, outside),
					via: fmt.Sprintf("svc/%s through %s", a.svc.Name, node)}, p, backends, noEndpoint)
			}
		}
	}
}

// nodes lists the management ports of nodes, sorted.
func (a *asker) nodes() []End {
	var out []End
	for n := range a.State.Nodes {
		ends, _, err := a.clients(Side{Kind: Node, Name: cluster.Name{Name: n}})
		if err == nil { // a node without a subnet forwards nothing
			out = append(out, ends...)
		}
	}
	slices.SortFunc(out, func(x, y End) int { return strings.Compare(x.Name, y.Name) })
	return out
}
