package allocate

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// asRecorded is a port that asks for what its pod's annotation records. An interface keeps its addresses, whatever
// somebody writes later into the annotation that asks for them. Pods of the cluster's own network ask for nothing, and
// in a network without subnets nothing but what they ask for is known.
func (u *update) asRecorded(p port, claimed annotation.PodNetwork) port {
	if u.network.Hosts || u.bare() {
		return p
	}
	for _, ip := range claimed.IPs {
		asked := &p.asked.IPv6
		if ip.Addr().Is4() {
			asked = &p.asked.IPv4
		}
		if asked.Addr() != ip.Addr() {
			*asked = netip.Prefix{}
		}
	}
	p.asked.MAC = ipnet.MAC{}
	if m := claimed.MAC; m.Unicast() && !m.Derived() { // somebody chose it
		p.asked.MAC = m
	}
	return p
}

// claim grants a pod the addresses of its annotation: see asRecorded.
func (u *update) claim(p port, claimed annotation.PodNetwork, first cluster.PodPort) ([]uint64, error) {
	if u.bare() {
		if err := differs(p.asked, claimed); err != nil {
			return nil, err
		}
	}
	if err := u.refusesAsked(p, first); err != nil {
		return nil, err
	}
	if u.bare() { // it has what it asks for
		return nil, nil
	}
	name := claimName(p.Pod, p.asked)
	u.claimed[name] = true
	if held := u.claims[name]; held != nil {
		return u.enter(held, p, claimed.IPs, first)
	}
	if lease := u.book.pods[first]; lease != nil && slices.Equal(u.held(first).IPs, claimed.IPs) {
		return lease.numbers, nil
	}
	return u.lease(p.pod.Node).claim(p.Pod, claimed.IPs)
}

// differs is the error that an annotation has something else than the pod asks for.
func differs(asked cluster.Asked, claimed annotation.PodNetwork) error {
	for _, ip := range claimed.IPs {
		if want := asked.Of(ip.Addr().Is4()); want.IsValid() && want.Addr() != ip.Addr() {
			return fmt.Errorf("%s is not %s, which the pod asks for", ip, want.Addr())
		}
	}
	if asked.MAC != (ipnet.MAC{}) && asked.MAC != claimed.MAC {
		return fmt.Errorf("%s is not %s, which the pod asks for", claimed.MAC, asked.MAC)
	}
	return nil
}

// refusesAsked is why a pod can't have the MAC, or in a network without subnets the addresses, that it asks for. It may
// share them with the interface first.
func (u *update) refusesAsked(p port, first cluster.PodPort) error {
	if other, taken := u.macs[p.asked.MAC]; taken && other != p.PodPort && other != first {
		return takenError{p.asked.MAC.String(), ofMAC, holder(other.Pod)}
	}
	for _, ip := range p.asked.IPs() {
		if other, taken := u.addrs[ip.Addr()]; taken && other != p.PodPort && other != first {
			return takenError{ip.Addr().String(), ofAddress, holder(other.Pod)}
		}
		if u.bare() && (ip.IsSingleIP() || ip.Bits() == 0) {
			return fmt.Errorf("%s: the network has no subnets, want an address with the length of one such as %s/24",
				ip, ip.Addr())
		}
		// With subnets, the definition was refused.
		if mtu := u.network.MTU; u.bare() && ip.Addr().Is6() && mtu != 0 && mtu < annotation.MinMTUIPv6 {
			return fmt.Errorf("%s: the mtu of the network is %d, and IPv6 needs %d bytes: want an IPv4 address, or a network "+
				"with a larger mtu", ip, mtu, annotation.MinMTUIPv6)
		}
	}
	return nil
}

// holdAsked records what a pod has because it asked for it.
func (u *update) holdAsked(p port) {
	if p.asked.MAC != (ipnet.MAC{}) {
		record(u.macs, p.asked.MAC, p.PodPort)
	}
	if u.bare() {
		for _, ip := range p.asked.IPs() {
			record(u.addrs, ip.Addr(), p.PodPort)
		}
	}
}

// releaseAsked takes that back. Those that wait for it are looked at again: no time passes before another may have it.
// An heir, unless that is zero, has asked for the same.
func (u *update) releaseAsked(n cluster.PodPort, lease *podLease, heir cluster.PodPort) {
	pass(u.macs, lease.asked.MAC, n, heir)
	for _, ip := range lease.asked.IPs() {
		pass(u.addrs, ip.Addr(), n, heir)
	}
	if lease.asked == (cluster.Asked{}) {
		return
	}
	for _, pods := range u.waitingPods {
		for other := range pods {
			u.pods[other] = true
		}
	}
}

// askedBy is the annotation in which a pod asks for this in the network.
func (u *update) askedBy(asked cluster.Asked) string {
	if u.network.Primary {
		return preferredBy(asked)
	}
	return annotation.NetworkRequests
}

// preferredBy is the annotation in which a pod asks for this in its primary network.
func preferredBy(asked cluster.Asked) string {
	if asked == (cluster.Asked{Claim: asked.Claim}) {
		return annotation.PrimaryClaim
	}
	return annotation.DefaultNetwork
}
