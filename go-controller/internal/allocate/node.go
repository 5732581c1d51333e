package allocate

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Reasons of the Problems of this package.
const (
	ReasonNameReserved    = "NodeNameReserved"
	ReasonSubnetRefused   = "NodeSubnetRefused"
	ReasonSubnetExhausted = "ClusterSubnetExhausted"
	ReasonJoinRefused     = "GatewayJoinAddressRefused"
	ReasonJoinExhausted   = "JoinSubnetExhausted"
	ReasonAddressRefused  = "PodAddressRefused"
	ReasonAddressGone     = "NodeSubnetExhausted"
)

// nodeLease is a node's subnets and the pods' addresses in them.
type nodeLease struct {
	uid     string
	subnets []netip.Prefix
	pools   []*pool
}

func newNodeLease(uid string, subnets []netip.Prefix) *nodeLease {
	l := &nodeLease{uid: uid, subnets: subnets}
	for _, p := range subnets {
		l.pools = append(l.pools, newPool(p))
	}
	return l
}

// refuseName reports a node whose switch would have the name of the join switch. The node gets no subnets.
func (u *update) refuseName(c cluster.Change) {
	if n, ok := c.New.(*cluster.Node); ok {
		u.problem(n, n.UID, ReasonNameReserved, fmt.Sprintf("metadata.name: %q is the name of the join switch: "+
			"the node gets no network; want another name", n.Name))
	}
}

// releaseNodes takes back the subnets of nodes that are gone, or that were made anew and claim others.
func (u *update) releaseNodes() {
	for _, name := range sortedKeys(u.nodes) {
		lease, node := u.Ledger.nodes[name], u.s.Nodes[name]
		if node == nil {
			delete(u.waitingNodes, name)
		}
		if lease == nil || node != nil && node.UID == lease.uid {
			continue
		}
		if node != nil && node.AnnotationError == "" &&
			(len(node.Annotated) == 0 || slices.Equal(node.Annotated, lease.subnets)) {
			lease.uid = node.UID // made anew under its name: the node and its pods keep what they have
			continue
		}
		for _, n := range u.s.PodsOn(name) {
			u.pods[n] = true
			u.releasePod(n)
		}
		u.former.put(name, lease.subnets)
		u.subnets.release(name, lease.subnets)
		u.freed.add(lease.subnets...)
		delete(u.Ledger.nodes, name)
		u.Changes = append(u.Changes, u.s.GrantNode(name, nil))
	}
}

// claimNodes grants nodes the subnets that they claim, the oldest node first. Subnets that allocate would never grant,
// such as those of an older --cluster-subnets, come last: a node that claims everything gets only what is left.
func (u *update) claimNodes() {
	regular := func(n *cluster.Node) bool { return u.subnets.regular(n.Annotated...) }
	nodes := u.sortedNodes()
	slices.SortStableFunc(nodes, func(x, y *cluster.Node) int { return cluster.CompareBool(!regular(x), !regular(y)) })
	for _, n := range nodes {
		lease := u.Ledger.nodes[n.Name]
		switch {
		case lease != nil:
			u.confirmNode(n, lease)
		case n.AnnotationError != "":
			u.problem(n, n.UID, ReasonSubnetRefused, n.AnnotationError+": new subnets are given out")
		case len(n.Annotated) > 0:
			if err := u.subnets.claim(n.Name, n.Annotated); err != nil {
				u.problem(n, n.UID, ReasonSubnetRefused,
					fmt.Sprintf("annotation %s: %v: new subnets are given out", annotation.NodeSubnets, err))
				continue
			}
			u.grantNode(n, n.Annotated)
		}
	}
}

// confirmNode has a node's annotation written again when it is not what the node holds. While a patch is on its way,
// another change of the node leads to the same patch again, which does no harm. Leaving it out could keep what a user
// wrote at that moment.
func (u *update) confirmNode(n *cluster.Node, lease *nodeLease) {
	switch {
	case n.AnnotationError != "":
		u.problem(n, n.UID, ReasonSubnetRefused, fmt.Sprintf("%s: %v is written again", n.AnnotationError, lease.subnets))
	case slices.Equal(n.Annotated, lease.subnets):
		return
	case len(n.Annotated) > 0:
		u.problem(n, n.UID, ReasonSubnetRefused,
			fmt.Sprintf("annotation %s: %v is not what the node holds: %v is written again",
				annotation.NodeSubnets, n.Annotated, lease.subnets))
	}
	u.patched[n.Name] = true
}

// allocateNodes grants subnets to nodes that have none. Nodes that had subnets get those back, before the others get
// what is free.
func (u *update) allocateNodes() {
	var wanting []*cluster.Node
	for _, n := range u.sortedNodes() {
		if u.Ledger.nodes[n.Name] == nil && !u.restoreNode(n) {
			wanting = append(wanting, n)
		}
	}
	for _, n := range wanting {
		subnets, err := u.subnets.allocate(n.Name)
		if err == nil {
			u.grantNode(n, subnets)
			u.patched[n.Name] = true
			continue
		}
		if u.waitingNodes[n.Name] != n.UID {
			u.problem(n, n.UID, ReasonSubnetExhausted, err.Error())
		}
		u.waitingNodes[n.Name] = n.UID
		if n.ClaimsSubnets() { // after a restart the claim would be believed
			u.patched[n.Name] = true
		}
	}
}

// restoreNode grants a node the subnets that it had before it was deleted. When the ledger does not go back that far,
// it grants those that the node's pods have addresses in. With other subnets running pods would lose their addresses.
func (u *update) restoreNode(n *cluster.Node) bool {
	candidates := [][]netip.Prefix{u.former.held[n.Name]}
	for _, name := range u.s.PodsOn(n.Name) {
		p := u.s.Pods[name]
		if p.Annotated == nil || !p.WantsNetwork() {
			continue
		}
		var subnets []netip.Prefix
		for _, ip := range p.Annotated.IPs {
			subnets = append(subnets, ip.Masked())
		}
		if u.subnets.regular(subnets...) {
			candidates = append(candidates, subnets)
		}
	}
	for _, subnets := range candidates {
		if len(subnets) > 0 && u.subnets.claim(n.Name, subnets) == nil {
			u.grantNode(n, subnets)
			u.patched[n.Name] = true
			return true
		}
	}
	return false
}

func (u *update) grantNode(n *cluster.Node, subnets []netip.Prefix) {
	u.Ledger.nodes[n.Name] = newNodeLease(n.UID, subnets)
	delete(u.waitingNodes, n.Name)
	u.former.drop(n.Name)
	u.Changes = append(u.Changes, u.s.GrantNode(n.Name, subnets))
	for _, p := range u.s.PodsOn(n.Name) {
		u.pods[p] = true
	}
}

// patchNodes writes what nodes hold, one patch a node. A node that was set up by hand is no object of the API server.
func (u *update) patchNodes() {
	for _, name := range sortedKeys(u.patched) {
		n := u.s.Nodes[name]
		if n.ByHand {
			continue
		}
		p := Patch{Ref: n.Ref(), UID: n.UID}
		if lease := u.Ledger.nodes[name]; lease != nil {
			p.set(annotation.NodeSubnets, annotation.MarshalNodeSubnets(lease.subnets))
		} else if n.ClaimsSubnets() {
			p.Remove = append(p.Remove, annotation.NodeSubnets)
		}
		if number, held := u.join.number[name]; held {
			p.set(annotation.GatewayJoinAddrs, annotation.MarshalGatewayJoinAddrs(u.join.addrs(number)))
		} else if n.ClaimsJoin() {
			p.Remove = append(p.Remove, annotation.GatewayJoinAddrs)
		}
		u.Patches = append(u.Patches, p)
	}
}

func (p *Patch) set(key, value string) {
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[key] = value
}
