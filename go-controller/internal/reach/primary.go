package reach

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// relay is what both sides see of a connection whose addresses an exit of a primary network replaces.
type relay struct {
	dialled netip.AddrPort // where the client's rows see it connect to
	seen    End            // whom the server's rows see connect
}

// networkText is a network as users know it.
func networkText(n *cluster.Network) string {
	if n == nil {
		return "the cluster's own network"
	}
	d, _ := cluster.DefinitionOf(n.Name)
	return "the primary network " + d.String()
}

// primaryEnds is a pod's addresses in its primary network.
func (c *Cluster) primaryEnds(p *cluster.Pod) (out []End, err error) {
	id, why := c.State.Primary(p.Name.Namespace)
	n := c.State.Networks[id]
	switch {
	case why != "":
		return nil, fmt.Errorf("finding the address of Pod %s: it waits for its primary network: %s", p.Name, why)
	case n == nil:
		return nil, fmt.Errorf("finding the address of Pod %s: it waits for its primary network, which is refused: see its "+
			"Events", p.Name)
	}
	port := cluster.PodPort{Pod: p.Name, Interface: names.PrimaryInterface}
	for _, a := range cluster.PodAddrs(c.State.In(id).PodNetworks[port]) {
		out = append(out, c.inNetwork(n, p, a))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("finding the address of Pod %s: it has none in %s: see its Events", p.Name, networkText(n))
	}
	return out, nil
}

// inNetwork is a pod at an address in its primary network.
func (c *Cluster) inNetwork(n *cluster.Network, p *cluster.Pod, a netip.Addr) End {
	shown := n.Name
	if d, ok := cluster.DefinitionOf(n.Name); ok && d.Namespace == "" {
		shown = names.Defined(p.Name.Namespace, d.Name)
	}
	return End{Name: "pod/" + p.Name.String(), Addr: a, pod: p, node: p.Node, in: n,
		port: shown.LogicalPort(p.Name.Namespace, p.Name.Name, names.PrimaryInterface)}
}

// member is who has an address in a network, which may be the cluster's own.
func (c *Cluster) member(n *cluster.Network, a netip.Addr) End {
	if n == nil || n.Hosts {
		return c.at(a)
	}
	for port, net := range c.State.In(n.Name).PodNetworks {
		if p := c.State.Pods[port.Pod]; p != nil && slices.Contains(cluster.PodAddrs(net), a) &&
			!c.State.StandsBy(p, n.Name, port.Interface) {
			return c.inNetwork(n, p, a)
		}
	}
	return End{Name: "nobody", Addr: a, in: n}
}

// logicalSwitch is the switch of a pod's port.
func (e End) logicalSwitch() string {
	switch {
	case e.in == nil:
		return names.Own.NodeSwitch(e.node)
	case e.in.Topology == cluster.Layer3:
		return e.in.Name.NodeSwitch(e.node)
	}
	return e.in.Name.SharedSwitch()
}

// inside is true for an address of a primary network's ranges.
func inside(n *cluster.Network, a netip.Addr) bool {
	return n != nil && slices.ContainsFunc(n.Subnets, func(s config.ClusterSubnet) bool { return s.CIDR.Contains(a) })
}

// strangers is the clients of a question. One that is asked about by its address is in the network of the server if
// that has the address.
func (c *Cluster) strangers(from []End, q Question) []End {
	if q.From.Kind != Address || q.To.Kind != Pod {
		return from
	}
	to, err := c.podEnds(q.To.Name)
	if err != nil || !inside(to[0].in, q.From.Addr) {
		return from
	}
	return []End{c.member(to[0].in, q.From.Addr)}
}

// servers is whom these clients connect to, of a side. An address means who has it in the clients' network. Nodes reach
// pods by the interface that the kubelet probes, and so do pods of the cluster's own network that may reach some port.
func (c *Cluster) servers(from []End, s Side) (out []End, notes []string, err error) {
	switch client := from[0]; {
	case s.Kind == Address && inside(client.in, s.Addr):
		return []End{c.member(client.in, s.Addr)}, nil, nil
	case s.Kind == Pod && client.pod == nil && client.node != "" && c.State.Locked(s.Name):
		if out, err = c.ownEnds(s.Name); err == nil && out[0].pod != nil {
			notes = append(notes, "nodes reach the pod by its interface eth0, and not in its primary network")
		}
		return out, notes, err
	case s.Kind == Pod && client.pod != nil && client.in == nil && c.opens(s.Name):
		out, err = c.ownEnds(s.Name)
		return out, []string{"the pod opens ports of its interface eth0 (annotation " + annotation.OpenPorts +
			"): this is about that interface"}, err
	}
	return c.sideEnds(s)
}

// opens is true for a pod of a primary network that opens ports in the cluster's own.
func (c *Cluster) opens(pod cluster.Name) bool {
	p := c.State.Pods[pod]
	return p != nil && p.WantsNetwork() && c.State.Opens(p) != cluster.OpenPorts{}
}

// apart is why a client can't connect to a server, whatever policies say; "" when it can.
func (c *Cluster) apart(from, to End) string {
	switch {
	case from.in == to.in:
		return ""
	case from.pod != nil && to.pod != nil:
		return fmt.Sprintf("they are in different networks, which nothing connects: %s is in %s, %s in %s", from.Name,
			networkText(from.in), to.Name, networkText(to.in))
	case to.in != nil:
		return fmt.Sprintf("only Services with node ports lead from outside to %s", networkText(to.in))
	}
	if inside(from.in, to.Addr) { // as it is where classes of addresses are asked about
		return "no pod of " + networkText(from.in) + " has the address"
	}
	own := c.State.Networks[names.Own]
	if to.port != "" || inside(own, to.Addr) ||
		slices.ContainsFunc(own.JoinSubnets, func(p netip.Prefix) bool { return p.Contains(to.Addr) }) {
		return fmt.Sprintf("exits lead from %s to nothing of the cluster's own network but the Kubernetes API and DNS",
			networkText(from.in))
	}
	return ""
}

// relayed asks the rows of both sides of a connection whose addresses an exit replaces.
func (c *Cluster) relayed(e *verdict.Evaluator, w connection, s span) (Answer, error) {
	out, in := w.packet(s), w.packet(s)
	out.Outport, out.Dst, out.DstPort = "", w.relay.dialled.Addr(), w.relay.dialled.Port()
	in.Inport, in.Src = "", w.relay.seen.Addr
	ask := func(port string, p verdict.Packet) ([]verdict.Step, error) {
		if port == "" {
			return nil, nil
		}
		return e.Steps(p, netip.AddrPort{})
	}
	first, err := ask(w.from.port, out)
	if err != nil {
		return Answer{}, err
	}
	second, err := ask(w.to.port, in)
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Ports: PortSet{[]span{s}}, Egress: c.decision(egress, w.from, w.relay.seen, first),
		Ingress: c.decision(ingress, w.to, w.relay.seen, second)}
	answer.Allowed = answer.Egress.Allowed && answer.Ingress.Allowed
	return answer, nil
}

// primary adds what a client reaches of a Service that is in a primary network, or the client is.
func (a *asker) primary(client End, p cluster.ServicePort) {
	way := connection{from: client, via: fmt.Sprintf("svc/%s", a.svc.Name)}
	refuse := func(format string, args ...any) { a.add(way, p, nil, fmt.Sprintf(format, args...)) }
	same := a.served != nil && (client.in == a.served || client.in == nil && a.served.Hosts)
	switch {
	case a.served == nil:
		refuse("nobody reaches the Service: %s", a.none)
	case a.svc.Headless:
		refuse("it has no ClusterIP: its names in DNS have addresses of eth0, where pods answer at the ports alone " +
			"that they open")
	case same:
		a.inside(client, p)
	case a.served.Hosts && cluster.IsExitService(a.svc.Name):
		a.byExit(client, p)
	case a.served.Hosts:
		refuse("exits lead from %s to nothing of the cluster's own network but the Kubernetes API and DNS; a node port is "+
			"an address of a node", networkText(client.in))
	case !a.svc.ByExits(a.State.Config.Services):
		refuse("the Service is in %s: without node ports, only pods of it reach the Service", networkText(a.served))
	default:
		a.throughExits(client, p)
	}
}

// byExit adds what a pod of a primary network reaches by the exit of its node: the Kubernetes API, and DNS.
func (a *asker) byExit(client End, p cluster.ServicePort) {
	for _, ip := range a.svc.ClusterIPs {
		for _, exit := range ipnet.Addrs(a.State.In(client.in.Name).ExitAddrs[client.node]) {
			if ip.Is4() != client.Addr.Is4() || exit.Is4() != ip.Is4() {
				continue
			}
			at := netip.AddrPortFrom(ip, p.Port)
			choice := cluster.Choose(p, ip.Is4(), a.slices)
			a.add(connection{from: client, via: fmt.Sprintf("svc/%s %s/%s", a.svc.Name, at, p.Protocol),
				relay: &relay{at, exitEnd(client.in, client.node, exit)}}, p, choice.Backends, noEndpoint)
		}
	}
}

// throughExits adds what others than a network's own pods reach of a Service there. Each exit leads to all backends, or
// with externalTrafficPolicy Local to those on its node.
func (a *asker) throughExits(client End, p cluster.ServicePort) {
	grants, is4, before := a.State.In(a.served.Name), client.Addr.Is4(), len(a.out)
	choice := cluster.Choose(p, is4, a.slices)
	near := cluster.ChooseLocal(p, is4, a.slices).Nodes
	for _, node := range slices.Sorted(maps.Keys(grants.ExitAddrs)) {
		exit, ok := ipnet.FirstOf(ipnet.Addrs(grants.ExitAddrs[node]), is4)
		join, joined := ipnet.FirstOf(ipnet.Addrs(grants.JoinAddrs[node]), is4)
		backends := choice.Backends
		if a.svc.ExternalLocal {
			backends = near[node]
		}
		if !ok || !joined || len(backends) == 0 {
			continue
		}
		if client.in != nil { // it connects to the node port of a node
			exit = a.nodeAddr(node, is4)
		}
		seen := exitEnd(a.served, node, join)
		via := seen.String()
		if a.svc.ExternalLocal && client.node == "" { // it is outside of the cluster
			seen = End{Name: client.Name, Addr: client.Addr}
		}
		a.add(connection{from: client, via: fmt.Sprintf("svc/%s through %s", a.svc.Name, via),
			relay: &relay{netip.AddrPortFrom(exit, p.NodePort), seen}}, p, backends, noEndpoint)
	}
	if len(a.out) == before {
		a.add(connection{from: client, via: fmt.Sprintf("svc/%s", a.svc.Name)}, p, nil, noEndpoint)
	}
}

// nodeAddr is an address of a node's own. Without one in the family it is that of the management port.
func (c *Cluster) nodeAddr(node string, is4 bool) (out netip.Addr) {
	ends, err := c.nodeEnds(node)
	if err != nil {
		return out
	}
	for _, e := range ends {
		if e.Addr.Is4() == is4 && (!out.IsValid() || e.port == "") {
			out = e.Addr
		}
	}
	return out
}

// exitEnd is the exit of a network on a node, at one of its addresses.
func exitEnd(n *cluster.Network, node string, a netip.Addr) End {
	d, _ := cluster.DefinitionOf(n.Name)
	return End{Name: fmt.Sprintf("the exit of %s on node/%s", d, node), Addr: a}
}
