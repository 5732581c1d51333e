package allocate

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Reasons of the condition of an IPAMClaim, as ovn-kubernetes has them. No Event has them. What else fails has
// ReasonIPAMClaimRefused.
const (
	successfulAllocation = "SuccessfulAllocation"
	subnetExhausted      = "SubnetExhausted"
	addressConflict      = "IPAddressConflict"
	macConflict          = "MACAddressConflict"
)

// What a takenError is about.
const (
	ofAddress = "address"
	ofMAC     = "MAC"
)

// claimLease is the addresses of an IPAMClaim, one for each of the network's pools. The pools have the claim in place
// of the pod that has the addresses.
type claimLease struct {
	uid     string
	numbers []uint64
	pod     cluster.PodPort // that has them now; zero for none
}

// claimHolder is what the pools have in place of a pod's name. No pod has it: it contains a space.
func claimHolder(claim cluster.Name) cluster.Name {
	return cluster.Name{Name: string(cluster.KindIPAMClaim) + " " + claim.String()}
}

// claimName is the IPAMClaim that a pod refers to; zero for none.
func claimName(pod cluster.Name, asked cluster.Asked) cluster.Name {
	if asked.Claim == "" {
		return cluster.Name{}
	}
	return cluster.Name{Namespace: pod.Namespace, Name: asked.Claim}
}

// claimOf is the IPAMClaim whose addresses an interface has now; zero for none.
func (u *update) claimOf(p cluster.PodPort, asked cluster.Asked) cluster.Name {
	name := claimName(p.Pod, asked)
	held := u.claims[name]
	if held == nil {
		return cluster.Name{}
	}
	if second, _ := u.movesWith(held.pod); held.pod != p && second != p {
		return cluster.Name{}
	}
	return name
}

// lookAtClaim has an IPAMClaim looked at, and the pods that refer to it.
func (u *update) lookAtClaim(claim cluster.Name) {
	u.claimed[claim] = true
	for _, pod := range u.s.PodsClaiming(claim) {
		u.lookAt(u.s.Pods[pod])
	}
}

// lookAtClaims has the IPAMClaims of a namespace looked at: what their networks are called may mean others now. After a
// change of a ClusterUserDefinedNetwork, which has no namespace, those of all are.
func (u *update) lookAtClaims(namespace string) {
	for claim := range u.s.IPAMClaims {
		if namespace == "" || claim.Namespace == namespace {
			u.claimed[claim] = true
		}
	}
}

// lookAtClaimsOf has the IPAMClaims of a network looked at that has come.
func (u *update) lookAtClaimsOf(n names.Network) {
	for claim, c := range u.s.IPAMClaims {
		if u.s.NetworkOfClaim(c) == n {
			u.claimed[claim] = true
		}
	}
}

// settleClaims brings the addresses of IPAMClaims in line with the objects, the oldest first. What annotated pods have
// is granted by then, and what new pods get is not.
func (u *update) settleClaims() {
	if !u.network.Persistent {
		return
	}
	wants := func(c *cluster.IPAMClaim) bool {
		return c != nil && c.Invalid == "" && u.s.NetworkOfClaim(c) == u.network.Name
	}
	var claims []cluster.Name
	for name := range u.claimed { // most may be about other networks
		if u.claims[name] != nil || wants(u.s.IPAMClaims[name]) {
			claims = append(claims, name)
		}
	}
	slices.SortFunc(claims, func(a, b cluster.Name) int {
		return cmp.Or(cmp.Compare(u.created(a), u.created(b)), cluster.CompareNames(a, b))
	})
	for _, name := range claims {
		c, held := u.s.IPAMClaims[name], u.claims[name]
		wanted := wants(c)
		if held != nil && (!wanted || c.UID != held.uid) {
			u.dropClaim(name, held)
			held = nil
		}
		if !wanted || held != nil {
			continue
		}
		if !u.adopt(c) && len(c.IPs) > 0 {
			if err := u.recall(c); err != nil {
				u.refuseClaim(c, err)
			}
		}
	}
}

// refuseClaim reports that an IPAMClaim can't have the addresses of its status, unless the status says so already.
func (u *update) refuseClaim(c *cluster.IPAMClaim, err error) {
	u.fail(c.Name, err)
	if u.failed[c.Name] != said(c) {
		u.problem(c, c.UID, ReasonIPAMClaimRefused, err.Error()+": pods that refer to the claim wait; want another claim, "+
			"or that the addresses are free")
	}
}

func (u *update) created(claim cluster.Name) int64 {
	if c := u.s.IPAMClaims[claim]; c != nil {
		return c.Created
	}
	return 0
}

func sortedNames(set map[cluster.Name]bool) (out []cluster.Name) {
	for n := range set {
		out = append(out, n)
	}
	slices.SortFunc(out, cluster.CompareNames)
	return out
}

// dropClaim takes the addresses from an IPAMClaim that is gone. A pod that has them keeps them.
func (u *update) dropClaim(name cluster.Name, held *claimLease) {
	delete(u.claims, name)
	lease := u.book.pods[held.pod]
	for i, number := range held.numbers {
		pool := u.shared.pools[i]
		if lease != nil {
			pool.hold(number, held.pod.Pod)
			continue
		}
		pool.release(number)
		u.freed.add(ipnet.Single(pool.addr(number)))
	}
	second, _ := u.movesWith(held.pod)
	for _, n := range []cluster.PodPort{held.pod, second} {
		if lease := u.book.pods[n]; lease != nil {
			lease.claim = cluster.Name{}
		}
	}
}

// adopt gives an IPAMClaim the addresses that a pod has already which refers to it, such as after a restart. Those of
// another IPAMClaim stay that one's, whatever the pod's author writes later into the annotation that refers to one.
func (u *update) adopt(c *cluster.IPAMClaim) bool {
	var ports []port
	for _, name := range u.s.PodsClaiming(c.Name) {
		for _, n := range u.portsOf(name) {
			if p, ok := u.port(n); ok && claimName(p.Pod, p.asked) == c.Name && u.unclaimed(n) {
				ports = append(ports, p)
			}
		}
	}
	if len(ports) == 0 {
		return false
	}
	p := slices.MinFunc(ports, comparePortAges)
	lease := u.book.pods[p.PodPort]
	for i, number := range lease.numbers {
		u.shared.pools[i].hold(number, claimHolder(c.Name))
	}
	held := &claimLease{uid: c.UID, numbers: lease.numbers, pod: p.PodPort}
	u.claims[c.Name] = held
	lease.claim = c.Name
	if second, moves := u.movesWith(p.PodPort); moves {
		u.book.pods[second].claim = c.Name
		if second.Pod.Name == c.Pod {
			held.pod = second
		}
	}
	return true
}

// unclaimed tells whether an interface has addresses which are no IPAMClaim's.
func (u *update) unclaimed(n cluster.PodPort) bool {
	lease := u.book.pods[n]
	return lease != nil && lease.claim == cluster.Name{}
}

// comparePortAges orders interfaces: those of the oldest pod come first.
func comparePortAges(x, y port) int {
	return cmp.Or(x.pod.CompareAge(y.pod), cmp.Compare(x.Interface, y.Interface))
}

// recall gives an IPAMClaim the addresses that its status has. No pod has them.
func (u *update) recall(c *cluster.IPAMClaim) error {
	numbers, err := u.shared.claim(claimHolder(c.Name), c.IPs)
	if err != nil {
		return fmt.Errorf("status.ips: %w", err)
	}
	u.claims[c.Name] = &claimLease{uid: c.UID, numbers: numbers}
	return nil
}

// take grants a pod addresses: those of its IPAMClaim, those that it asks for, or the next free ones.
func (u *update) take(p port, first cluster.PodPort) ([]uint64, error) {
	if err := u.refusesAsked(p, first); err != nil {
		return nil, err
	}
	lease := u.lease(p.pod.Node)
	name := claimName(p.Pod, p.asked)
	if p.asked.Claim == "" {
		return lease.take(p, u.freed)
	}
	c := u.s.IPAMClaims[name]
	switch {
	case !u.network.Persistent:
		return nil, fmt.Errorf("ipam-claim-reference %q: the network keeps no addresses for IPAMClaims, want one with "+
			"ipam.lifecycle Persistent, or no reference", p.asked.Claim)
	case c == nil:
		return nil, fmt.Errorf("there is no IPAMClaim %s", name)
	case c.Invalid != "":
		return nil, fmt.Errorf("IPAMClaim %s: %s", name, c.Invalid)
	case u.s.NetworkOfClaim(c) != u.network.Name:
		return nil, fmt.Errorf("IPAMClaim %s: spec.network is %.64q, want that of the interface, %s", name, c.Network,
			u.network.Name)
	}
	u.claimed[name] = true
	if u.claims[name] == nil && len(c.IPs) > 0 {
		if err := u.recall(c); err != nil {
			u.fail(name, err)
			return nil, fmt.Errorf("IPAMClaim %s: %w", name, err)
		}
	}
	if held := u.claims[name]; held != nil {
		return u.enter(held, p, nil, first)
	}
	for _, asked := range c.Asked {
		if of := &p.asked.IPv4; asked.Addr().Is4() && !of.IsValid() {
			*of = asked
		}
		if of := &p.asked.IPv6; asked.Addr().Is6() && !of.IsValid() {
			*of = asked
		}
	}
	numbers, err := lease.take(p, u.freed)
	if err != nil {
		return nil, err
	}
	for i, number := range numbers {
		u.shared.pools[i].hold(number, claimHolder(name))
	}
	u.claims[name] = &claimLease{uid: c.UID, numbers: numbers, pod: p.PodPort}
	return numbers, nil
}

// enter gives a pod the addresses of its IPAMClaim, which it may share with the interface first. With ips it has these
// already.
func (u *update) enter(held *claimLease, p port, ips []netip.Prefix, first cluster.PodPort) ([]uint64, error) {
	name := claimName(p.Pod, p.asked)
	if held.pod != (cluster.PodPort{}) && held.pod != p.PodPort && held.pod != first {
		return nil, fmt.Errorf("IPAMClaim %s is in use by Pod %s", name, held.pod.Pod)
	}
	has := u.addressesOf(held)
	if ips != nil && !slices.Equal(ips, has) {
		return nil, fmt.Errorf("%v are not the addresses %v of IPAMClaim %s", ips, has, name)
	}
	for _, ip := range has {
		if asked := p.asked.Of(ip.Addr().Is4()); asked.IsValid() && asked.Addr() != ip.Addr() {
			return nil, fmt.Errorf("%s is not the address %s of IPAMClaim %s, which the pod refers to", asked.Addr(),
				ip.Addr(), name)
		}
	}
	if first == (cluster.PodPort{}) {
		held.pod = p.PodPort
	}
	u.claimed[name] = true
	return held.numbers, nil
}

// addressesOf is the addresses of an IPAMClaim in this network.
func (u *update) addressesOf(held *claimLease) (out []netip.Prefix) {
	for i, number := range held.numbers {
		pool := u.shared.pools[i]
		out = append(out, netip.PrefixFrom(pool.addr(number), pool.subnet.Bits()))
	}
	return out
}

// fail has an IPAMClaim without addresses say why it has none. Of several reasons the first is said: that of the claim
// itself, else that of the oldest pod which refers to it.
func (u *update) fail(name cluster.Name, err error) {
	c := u.s.IPAMClaims[name]
	_, said := u.failed[name]
	if c == nil || said || u.claims[name] != nil || u.s.NetworkOfClaim(c) != u.network.Name {
		return
	}
	reason := ReasonIPAMClaimRefused
	var full fullError
	var taken takenError
	switch {
	case errors.As(err, &full):
		reason = subnetExhausted
	case errors.As(err, &taken) && taken.kind == ofMAC:
		reason = macConflict
	case errors.As(err, &taken):
		reason = addressConflict
	}
	u.claimed[name] = true
	u.failed[name] = cluster.Condition{Type: cluster.TypeIPsAllocated, Reason: reason, Message: err.Error()}
}

// patchClaims writes what IPAMClaims have, or why they have nothing, into their status.
func (u *update) patchClaims() {
	for _, name := range sortedNames(u.claimed) {
		c := u.s.IPAMClaims[name]
		if c == nil {
			continue
		}
		want := u.statusOf(c)
		differs := want.Condition.Type != "" && want.Condition != said(c)
		if want.Condition.True { // what the condition says beside that does not matter
			differs = !slices.Equal(want.IPs, c.IPs) || want.Pod != c.Pod || c.Own.Type != "" && !c.Own.True
		}
		if differs {
			u.Patches = append(u.Patches, Patch{Ref: c.Ref(), UID: c.UID, Claim: &want})
		}
	}
}

// said is what the status of an IPAMClaim says of its addresses. No generation is written there.
func said(c *cluster.IPAMClaim) cluster.Condition {
	own := c.Own
	own.Generation = 0
	return own
}

// statusOf is what the status of an IPAMClaim is to say. Without a condition it stays as it is.
func (u *update) statusOf(c *cluster.IPAMClaim) ClaimStatus {
	if b := u.ledger.books[u.s.NetworkOfClaim(c)]; b != nil && b.claims[c.Name] != nil {
		u.book = b
		held := u.claims[c.Name]
		return ClaimStatus{IPs: u.addressesOf(held), Pod: cmp.Or(held.pod.Pod.Name, c.Pod), Found: c.Status,
			Condition: cluster.Condition{Type: cluster.TypeIPsAllocated, True: true, Reason: successfulAllocation,
				Message: "the claim has addresses"}}
	}
	return ClaimStatus{Found: c.Status, Condition: u.failed[c.Name]}
}
