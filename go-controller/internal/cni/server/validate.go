package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// networksOf is the attachments that a request is about, as the pod's annotation has them. Who may create pods may
// have written the annotation before the master did. So one to the cluster's own network counts only if the master
// could have written it: with addresses for pods in this node's subnets, the MAC and the gateways that follow from
// them, no routes, and no address there that an older pod of this node has.
//
// Which addresses another network has is not known here. A wrong entry gives the pod nothing that is another's:
//
//   - The logical port has the pod's own name. Only the master makes it, with port security for the addresses that it
//     has granted. Without such a port ADD waits, and fails.
//   - MAC, addresses and routes are set in the pod's own namespace, where they bend its own traffic only. checkFurther
//     refuses routes that would cut the pod off from the cluster's own network, checkWayBack default routes into it.
//   - An address of an older pod of this node is refused in each network. While the master has not rewritten an older
//     pod's wrong entry, a younger pod with that address waits.
func (s *Server) networksOf(ctx context.Context, r *request, p local.Pod) ([]attached, error) {
	list, err := r.attachments(p.Network)
	if err != nil {
		return nil, err
	}
	settings, err := s.settings(ctx)
	if err != nil {
		return nil, err
	}
	subnets, _, err := annotation.NodeSubnetsIn(settings.NodeSubnets, names.Own)
	if err != nil {
		return nil, err
	}
	others := s.Pods.LocalPods()
	locked := slices.ContainsFunc(list, attached.isPrimary)
	for _, a := range list {
		switch {
		case a.Interface == "":
			err = checkNetwork(a.net, subnets, locked)
		case a.isPrimary():
			err = checkPrimary(a.net, subnets)
		default:
			err = checkFurther(a.net, subnets)
		}
		if err == nil {
			err = checkOthers(a.Attachment, p, a.net, others)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: entry %q: %w", annotation.PodNetworks, a.Key(), err)
		}
	}
	return list, nil
}

// isPrimary is true for the attachment to the pod's primary network, which has the default routes.
func (a attached) isPrimary() bool {
	return a.Interface == names.PrimaryInterface && len(a.net.Gateways) > 0
}

// checkPrimary is why a pod can't have an attachment with the default routes. It has nothing but a router in each of
// the interface's subnets that a further attachment has not.
func checkPrimary(n annotation.PodNetwork, own []netip.Prefix) error {
	if len(n.Gateways) > len(n.IPs) {
		return fmt.Errorf("gateway_ips %v: want one for each of ip_addresses %v", n.Gateways, n.IPs)
	}
	for i, g := range n.Gateways {
		if p := n.IPs[i]; !p.Contains(g) || p.Addr() == g {
			return fmt.Errorf("gateway_ips: %s: want the router in the subnet of %s", g, p)
		}
	}
	n.Gateways = nil
	return checkFurther(n, own)
}

// checkNetwork is why a pod on a node with these subnets can't have the attachment to the cluster's own network. One
// that is locked has no gateways there: it has those of its primary network.
func checkNetwork(n annotation.PodNetwork, subnets []netip.Prefix, locked bool) error {
	if len(n.IPs) != len(subnets) || len(subnets) == 0 {
		return fmt.Errorf("ip_addresses: %v: want one address in each of the node's subnets %v", n.IPs, subnets)
	}
	numbers := make([]uint64, len(subnets))
	for i, ip := range n.IPs {
		var err error
		if numbers[i], err = subnet.PodHost(subnets[i], ip); err != nil {
			return fmt.Errorf("ip_addresses: %w", err)
		}
	}
	want := subnet.Attachment(subnets, numbers, "")
	if locked {
		want.Gateways = nil
		if err := checkWayBack(n.Routes, subnets); err != nil {
			return fmt.Errorf("routes: %w", err)
		}
		want.Routes = n.Routes
	}
	if !cluster.SamePodNetwork(n, want) {
		return fmt.Errorf("mac_address %s, gateway_ips %v, routes %v, mtu %d: want %s, %v, no routes and no mtu", n.MAC,
			n.Gateways, n.Routes, n.MTU, want.MAC, want.Gateways)
	}
	return nil
}

// shortestWayBack is the least length of a prefix that such a route leads to: two of length 1 are a default route.
const shortestWayBack = 8

// checkWayBack is why a pod of a primary network can't have these routes in the cluster's own, on a node with these
// subnets: they lead to other pods, so that it can answer clients at the ports that it opens.
func checkWayBack(routes []annotation.Route, subnets []netip.Prefix) error {
	for _, r := range routes {
		through := func(s netip.Prefix) bool {
			router, ok := subnet.Router(s)
			return ok && router == r.NextHop
		}
		if r.Dest.Bits() < shortestWayBack || r.Dest != r.Dest.Masked() || r.Dest.Addr().Is4() != r.NextHop.Is4() ||
			!slices.ContainsFunc(subnets, through) {
			return fmt.Errorf("dest %s, nextHop %s: want a range of pods, and the router in one of the node's subnets %v",
				r.Dest, r.NextHop, subnets)
		}
	}
	return nil
}

// checkFurther is why a pod can't have a further attachment, on a node with these subnets of the cluster's own network.
func checkFurther(n annotation.PodNetwork, own []netip.Prefix) error {
	const multicast = 1 // a bit of the first byte (RFC 9542 section 2.1)
	if n.MAC[0]&multicast != 0 || n.MAC == (ipnet.MAC{}) {
		return fmt.Errorf("mac_address %s: want that of one host, such as 0a:58:0a:63:00:03", n.MAC)
	}
	if len(n.Gateways) > 0 {
		return fmt.Errorf("gateway_ips %v: want none: the pod's default routes are in the cluster's own network", n.Gateways)
	}
	for _, p := range n.IPs {
		if a := p.Addr(); !a.IsGlobalUnicast() && !a.IsLinkLocalUnicast() {
			return fmt.Errorf("ip_addresses: %s is not the address of a host", p)
		}
		if p.Bits() == 0 { // the kernel would take it for a default route
			return fmt.Errorf("ip_addresses: %s: want the length of a subnet's prefix", p)
		}
	}
	for _, r := range n.Routes {
		if err := checkRoute(r, n.IPs, own); err != nil {
			return fmt.Errorf("routes: dest %s, nextHop %s: %w", r.Dest, r.NextHop, err)
		}
	}
	return nil
}

// checkRoute is why an interface with these addresses can't have the route.
func checkRoute(r annotation.Route, ips, own []netip.Prefix) error {
	if r.Dest != r.Dest.Masked() {
		return fmt.Errorf("dest has host bits set, want %s", r.Dest.Masked())
	}
	if r.Dest.Bits() == 0 {
		return errors.New("the pod's default routes are in the cluster's own network, want a route to another subnet")
	}
	at := slices.IndexFunc(ips, func(p netip.Prefix) bool { return p.Contains(r.NextHop) })
	switch {
	case at < 0 || r.Dest.Addr().Is4() != r.NextHop.Is4():
		return fmt.Errorf("want a next hop of the same family in the interface's subnets %v", ips)
	case ips[at].Addr() == r.NextHop:
		return errors.New("the next hop is the pod itself, want the network's router")
	case ips[at].Masked() == r.Dest:
		return errors.New("dest is the interface's own subnet, to which it needs no route")
	}
	for _, p := range own {
		if p.Overlaps(r.Dest) {
			return fmt.Errorf("dest overlaps the node's subnet %s of the cluster's own network, want another one", p)
		}
	}
	return nil
}

// checkOthers is the error that an older pod, or an earlier interface of the pod, has one of the addresses in the
// network. The master decides in this order, too.
func checkOthers(in cluster.Attachment, p local.Pod, n annotation.PodNetwork, others []local.Pod) error {
	taken := map[netip.Addr]bool{}
	for _, a := range cluster.PodAddrs(n) {
		taken[a] = true
	}
	for _, o := range others {
		age := cmp.Or(cmp.Compare(o.Created, p.Created), cluster.CompareNames(nameOf(o), nameOf(p)))
		if o.Network == "" || o.Released || age > 0 {
			continue
		}
		for iface, theirs := range annotation.PodNetworksIn(o.Network, in.Network) {
			// A network has either the interfaces that Kubernetes asks for or further ones: others are nobody's.
			if (iface == "") != (in.Interface == "") || o.UID == p.UID && iface >= in.Interface {
				continue
			}
			for _, a := range cluster.PodAddrs(theirs) {
				if taken[a] {
					return fmt.Errorf("ip_addresses: %s is the address of the older pod %s", a, nameOf(o))
				}
			}
		}
	}
	return nil
}

func nameOf(p local.Pod) cluster.Name { return cluster.Name{Namespace: p.Namespace, Name: p.Name} }

// confirm checks once more, before the answer, that the pod still has the attachments with which it was made.
func (s *Server) confirm(ctx context.Context, r *request, ref podRef, pod local.Pod, made []attached) error {
	var why error
	// The callback accepts at once, so that there is no wait and no error.
	_ = s.Pods.WaitPod(ctx, pod.Namespace, pod.Name, func(p local.Pod, ok bool) bool {
		why = errPodGone
		if ok && p.UID == pod.UID {
			var now []attached
			if now, why = s.networksOf(ctx, r, p); why == nil && !slices.EqualFunc(now, made, sameAttached) {
				why = errNetworkChanged
			}
		}
		return true
	})
	if why != nil {
		return cniError(protocol.CodeTryAgain, why.Error(), "the network of pod %s is no longer the one that was set up", ref)
	}
	return nil
}
