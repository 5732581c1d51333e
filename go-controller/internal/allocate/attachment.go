package allocate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// attachment is what a pod that has the numbers in the subnets is told of its interface.
func (u *update) attachment(p port, numbers []uint64) annotation.PodNetwork {
	var net annotation.PodNetwork
	subnets := u.lease(p.pod.Node).subnets
	if u.shared == nil {
		net = subnet.Attachment(subnets, numbers, p.Interface)
		if p.Interface != "" {
			net.Routes = routesWithin(u.network, subnets)
		}
	} else {
		net = u.sharedAttachment(p, numbers)
	}
	switch {
	case u.network.Hosts && u.s.Locked(p.Pod):
		net.Gateways, net.Routes = nil, u.waysBack(p)
	case u.network.Primary:
		net.Gateways, net.Routes = routersIn(u.network, subnets), nil
	}
	if p.asked.MAC != (ipnet.MAC{}) {
		net.MAC = p.asked.MAC
	}
	net.MTU, net.Physical = u.network.MTU, u.network.Physical.Name
	return net
}

// waysBack is the routes of a pod of a primary network to clients in the cluster's own, if it opens ports there.
func (u *update) waysBack(p port) []annotation.Route {
	if (u.s.Opens(p.pod) == cluster.OpenPorts{}) {
		return nil
	}
	return routesWithin(u.network, u.lease(p.pod.Node).subnets)
}

// routersIn lists the addresses of a network's router in subnets.
func routersIn(n *cluster.Network, subnets []netip.Prefix) (out []netip.Addr) {
	for _, s := range subnets {
		if a, ok := n.Router(s); ok {
			out = append(out, a)
		}
	}
	return out
}

// sharedAttachment is the attachment to a network of one switch.
func (u *update) sharedAttachment(p port, numbers []uint64) (net annotation.PodNetwork) {
	if u.bare() { // pods choose the addresses there, and must not choose another's MAC by them
		net.IPs = p.asked.IPs()
		net.MAC = ipnet.MACOfText(string(u.network.Name) + " " + p.pod.UID + " " + p.Interface)
		return net
	}
	for i, pool := range u.shared.pools {
		net.IPs = append(net.IPs, netip.PrefixFrom(pool.addr(numbers[i]), pool.subnet.Bits()))
	}
	net.MAC = ipnet.MACFor(ipnet.Addrs(net.IPs))
	return net
}

// routesWithin leads to the other nodes' subnets of a network.
func routesWithin(n *cluster.Network, subnets []netip.Prefix) (out []annotation.Route) {
	for _, s := range subnets {
		router, ok := subnet.Router(s)
		for _, c := range n.Subnets {
			if ok && c.CIDR.Addr().Is4() == s.Addr().Is4() && c.CIDR != s {
				out = append(out, annotation.Route{Dest: c.CIDR, NextHop: router})
			}
		}
	}
	return out
}

// grant grants a pod the address that it asks for, or the next free one.
func (p *pool) grant(to port, freed *freedSet) (uint64, error) {
	asked := to.asked.Of(p.subnet.Addr().Is4())
	if !asked.IsValid() {
		if n, ok := p.take(to.Pod, freed); ok {
			return n, nil
		}
		return 0, fullError{p.subnet}
	}
	if asked.IsSingleIP() {
		asked = netip.PrefixFrom(asked.Addr(), p.subnet.Bits())
	}
	n, err := p.check(asked)
	if err == nil {
		p.hold(n, to.Pod)
	}
	return n, err
}

// reasonOf is the reason of a Problem with an error of take.
func (u *update) reasonOf(err error) string {
	var full fullError
	switch {
	case !errors.As(err, &full):
		return ReasonAddressRefused
	case u.shared != nil:
		return ReasonNetworkFull
	}
	return ReasonAddressGone
}

// describe is the message of a Problem with an error of take.
func (u *update) describe(p port, err error) string {
	var full fullError
	switch {
	case !errors.As(err, &full):
		return fmt.Sprintf("annotation %s: %v: the pod waits for it", u.askedBy(p.asked), err)
	case u.shared != nil:
		return err.Error() + " of the network: the pod waits for one; one that another pod had is free after a minute, and " +
			"one of a deleted Node's pods a minute after the pod has ended"
	}
	return fmt.Sprintf("%v of node %s: the pod waits for one; one that another pod had is free after a minute",
		err, p.pod.Node)
}

// patchPods writes what pods hold in every network, one patch a pod.
func (u *update) patchPods() {
	slices.SortFunc(u.patchedPods, (*cluster.Pod).CompareAge)
	for _, pod := range slices.Compact(u.patchedPods) {
		networks, classic, missing := u.holdings(pod)
		u.reportMissing(pod, missing)
		value := annotation.MarshalAttachments(networks)
		if value == pod.Annotated && (pod.ClassicOK || classic == "") {
			continue
		}
		u.reportUnused(pod)
		p := Patch{Ref: pod.Ref(), UID: pod.UID, Found: pod.FoundNow()}
		p.set(annotation.PodNetworks, pod.Annotated, value)
		p.set(annotation.PodClassic, pod.Annotated, classic)
		if len(networks) > 1 && classic != "" && !pod.StatusOK && !anyWaits(networks) {
			p.set(annotation.NetworkStatus, "", u.networkStatus(pod))
		}
		u.Patches = append(u.Patches, p)
	}
}

// holdings is what a pod holds in every network, by key, and the classic annotation. An attachment that the pod asks
// for and that can't be granted says why; missing is the first such text that is still to be reported.
func (u *update) holdings(pod *cluster.Pod) (all map[string]annotation.PodNetwork, classic, missing string) {
	all = map[string]annotation.PodNetwork{}
	waiting := map[string]annotation.PodNetwork{}
	primary, lacksPrimary := u.s.Primary(pod.Name.Namespace)
	for a := range u.s.Attachments(pod) {
		held, ok := u.s.In(a.Network).PodNetworks[cluster.PodPort{Pod: pod.Name, Interface: a.Interface}]
		why := u.missing(a)
		switch {
		case a.Interface == "" && ok:
			classic = annotation.MarshalPodClassic(held)
			all[a.Key()] = held
		case why != "":
			missing = cmp.Or(missing, because(a, primary, why))
			waiting[a.Key()] = had(pod, a, why)
		case ok:
			all[a.Key()] = held
		case u.ledger.books[a.Network] != nil:
			waiting[a.Key()] = annotation.PodNetwork{Waiting: u.whyUngranted(pod, a)}
		}
	}
	if lacksPrimary != "" {
		waiting[names.PrimaryLabel] = annotation.PodNetwork{Waiting: lacksPrimary}
		for key, before := range annotation.PodNetworksAt(pod.Annotated, names.PrimaryInterface) {
			if _, other := all[key]; !other { // a further interface of this name
				waiting[key] = annotation.PodNetwork{IPs: before.IPs, MAC: before.MAC, Waiting: lacksPrimary}
			}
		}
		if u.s.Namespaces[pod.Name.Namespace] != nil { // else it is a matter of moments
			missing = cmp.Or(missing, lacksPrimary)
		}
	}
	if pod.Refused != "" {
		waiting[annotation.NetworkRequests] = annotation.PodNetwork{Waiting: pod.Refused}
	}
	if classic != "" { // without it the pod waits anyway
		maps.Copy(all, waiting)
	}
	return all, classic, missing
}

// because is why a pod has not an attachment, after the annotation that asks for it, if one does.
func because(a cluster.Attachment, primary names.Network, why string) string {
	switch {
	case a.Network != primary || a.Interface != names.PrimaryInterface:
		return fmt.Sprintf("annotation %s: %s", annotation.NetworkRequests, why)
	case a.Asked.Unserved != "":
		return fmt.Sprintf("annotation %s: %s", annotation.DefaultNetwork, why)
	}
	return why
}

// had is an attachment that is not there, with what the pod had there until now: it gets that back when the network is
// there again.
func had(pod *cluster.Pod, a cluster.Attachment, why string) annotation.PodNetwork {
	before, _, _, err := annotation.PodNetworkAmong(pod.Annotated, a.Key())
	if err != nil {
		before = annotation.PodNetwork{}
	}
	return annotation.PodNetwork{IPs: before.IPs, MAC: before.MAC, Waiting: why}
}

// whyUngranted says why a network grants a pod nothing. It is reported elsewhere, if it does not end at once.
func (u *update) whyUngranted(pod *cluster.Pod, a cluster.Attachment) string {
	b := u.ledger.books[a.Network]
	switch w := b.waitingPods[pod.Node][cluster.PodPort{Pod: pod.Name, Interface: a.Interface}]; {
	case w.why != "":
		return w.why
	case b.waitingNodes[pod.Node] != "":
		return fmt.Sprintf("no subnet for Node %s is free in the network's subnets %v", pod.Node, b.subnets.ranges)
	}
	return "nothing is granted in this network yet"
}

// missing says why there is no network for a pod's interface; "" if there is, or if another plugin makes the interface.
func (u *update) missing(a cluster.Attachment) string {
	name, defined := cluster.DefinitionOf(a.Network)
	d := u.s.NetworkDefinitions[name]
	if n := u.s.UserNetwork(name); n != nil && d == nil {
		return u.missingUserDefined(a, n)
	}
	switch {
	case a.Interface == "" || d != nil && d.Foreign || !defined && u.s.Networks[a.Network] != nil:
		return ""
	case a.Asked.Unserved != "":
		return fmt.Sprintf("NetworkAttachmentDefinition %s: %s", name, a.Asked.Unserved)
	case d == nil:
		return fmt.Sprintf("there is no NetworkAttachmentDefinition %s", name)
	case d.Network == nil:
		return fmt.Sprintf("NetworkAttachmentDefinition %s can't be used: %s", name, d.Invalid)
	case u.s.Networks[a.Network] == nil:
		return fmt.Sprintf("NetworkAttachmentDefinition %s can't be used: %v", name, u.s.Allows(d.Network))
	}
	return ""
}

// missingUserDefined is the same for a network that users define.
func (u *update) missingUserDefined(a cluster.Attachment, n *cluster.UserNetwork) string {
	if a.Asked.Unserved != "" {
		return fmt.Sprintf("%s %s: %s", n.Ref().Kind, n.Name, a.Asked.Unserved)
	}
	if _, why := u.s.RefusesUserNetwork(n); why != "" {
		return fmt.Sprintf("%s %s can't be used: %s", n.Ref().Kind, n.Name, why)
	}
	return ""
}

func anyWaits(networks map[string]annotation.PodNetwork) bool {
	for _, n := range networks {
		if n.Waiting != "" {
			return true
		}
	}
	return false
}

// reportMissing reports once why a new pod does not start.
func (u *update) reportMissing(pod *cluster.Pod, missing string) {
	key := pod.UID + " " + missing
	switch {
	case missing == "":
		delete(u.ledger.waiting, pod.Name)
	case u.ledger.waiting[pod.Name] != key:
		u.ledger.waiting[pod.Name] = key
		u.Problems = append(u.Problems, cluster.Problem{Ref: pod.Ref(), UID: pod.UID, Reason: ReasonAttachment,
			Message: missing + ": a pod that has not started waits for it"})
	}
}

// reportUnused reports that a new pod asks for addresses in a primary network where there is none. Where it asks for
// another network, the annotation is for Multus.
func (u *update) reportUnused(pod *cluster.Pod) {
	ns := u.s.Namespaces[pod.Name.Namespace]
	if pod.Preferred == (cluster.Asked{}) || pod.Preferred.Unserved != "" || ns == nil || ns.InPrimary() {
		return
	}
	u.Problems = append(u.Problems, cluster.Problem{Ref: pod.Ref(), UID: pod.UID, Reason: ReasonNoPrimary,
		Message: fmt.Sprintf("annotation %s: it has no effect, since namespace %s has no primary network; want a pod "+
			"without it, or a namespace with the label %s", preferredBy(pod.Preferred), ns.Name, names.PrimaryLabel)})
}

// networkStatus is the annotation that tells users which interfaces a pod has.
func (u *update) networkStatus(pod *cluster.Pod) string {
	var out []annotation.InterfaceStatus
	for a := range u.s.Attachments(pod) {
		held, ok := u.s.In(a.Network).PodNetworks[cluster.PodPort{Pod: pod.Name, Interface: a.Interface}]
		if !ok {
			continue
		}
		status := annotation.InterfaceStatus{Name: "ovn-kubernetes", Interface: "eth0", PodNetwork: held}
		if name, is := cluster.DefinitionOf(a.Name()); is {
			status.Name, status.Interface = name.String(), a.Interface
		}
		status.Default = len(held.Gateways) > 0
		out = append(out, status)
	}
	return annotation.MarshalNetworkStatus(out)
}
