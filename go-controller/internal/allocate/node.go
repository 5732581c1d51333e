package allocate

import (
	"cmp"
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

// refuseName leaves a node without subnets whose switch would have the name of
// the join switch.
func (a *assignment) refuseName(c cluster.Change) {
	if n, ok := c.New.(*cluster.Node); ok {
		a.problem(n, n.UID, ReasonNameReserved, fmt.Sprintf("metadata.name: %q is the name of the join switch: the node gets no network; want another name", n.Name))
	}
}

func (a *assignment) releaseNodes() {
	for _, name := range sortedKeys(a.nodes) {
		lease, node := a.Ledger.nodes[name], a.s.Nodes[name]
		if node == nil {
			delete(a.starvedNodes, name)
		}
		if lease == nil || node != nil && node.UID == lease.uid {
			continue
		}
		if node != nil && node.AnnotatedAs == "" && (len(node.Annotated) == 0 || slices.Equal(node.Annotated, lease.subnets)) {
			lease.uid = node.UID // made anew under its name: it and its pods keep what they have
			continue
		}
		for _, n := range a.s.PodsOn(name) {
			a.pods[n] = true
			a.releasePod(n)
		}
		a.before.put(name, lease.subnets)
		a.subnets.release(name, lease.subnets)
		delete(a.Ledger.nodes, name)
		a.Changes = append(a.Changes, a.s.GrantNode(name, nil))
		for n := range a.starvedNodes {
			a.nodes[n] = true
		}
	}
}

// claimNodes hears what nodes say they hold, the oldest first; those that claim
// what would never be given to them (subnets of an older --cluster-subnets) come
// last, so that one who claims everything gets only what is left.
func (a *assignment) claimNodes() {
	nodes := a.sortedNodes()
	slices.SortStableFunc(nodes, func(x, y *cluster.Node) int {
		return cmp.Compare(a.oddity(x), a.oddity(y))
	})
	for _, n := range nodes {
		lease := a.Ledger.nodes[n.Name]
		if lease != nil {
			a.confirmNode(n, lease)
			continue
		}
		if n.AnnotatedAs != "" {
			a.problem(n, n.UID, ReasonSubnetRefused, n.AnnotatedAs+": new subnets are given out")
			continue
		}
		if len(n.Annotated) == 0 {
			continue
		}
		if err := a.subnets.claim(n.Name, n.Annotated); err != nil {
			a.problem(n, n.UID, ReasonSubnetRefused, fmt.Sprintf("annotation %s: %v: new subnets are given out", annotation.NodeSubnets, err))
			continue
		}
		a.grantNode(n, n.Annotated)
	}
}

// oddity is 1 for a node whose claim is not of subnets as they are given, else
// 0.
func (a *assignment) oddity(n *cluster.Node) int {
	if a.subnets.regular(n.Annotated) {
		return 0
	}
	return 1
}

// confirmNode compares what a node says with what it holds. While a patch is on
// its way a change of something else leads to the same patch again, which does
// no harm; not to write it could lose what somebody writes at that moment.
func (a *assignment) confirmNode(n *cluster.Node, lease *nodeLease) {
	switch {
	case n.AnnotatedAs != "":
		a.problem(n, n.UID, ReasonSubnetRefused, fmt.Sprintf("%s: %v is written again", n.AnnotatedAs, lease.subnets))
	case slices.Equal(n.Annotated, lease.subnets):
		return
	case len(n.Annotated) > 0:
		a.problem(n, n.UID, ReasonSubnetRefused, fmt.Sprintf("annotation %s: %v is not what the node holds: %v is written again",
			annotation.NodeSubnets, n.Annotated, lease.subnets))
	}
	a.patched[n.Name] = true
}

// allocateNodes gives subnets to nodes that have none: first, to each that had
// some, the same; then what is free.
func (a *assignment) allocateNodes() {
	var wanting []*cluster.Node
	for _, n := range a.sortedNodes() {
		switch {
		case a.Ledger.nodes[n.Name] != nil:
		case !a.inherit(n):
			wanting = append(wanting, n)
		}
	}
	for _, n := range wanting {
		subnets, err := a.subnets.allocate(n.Name)
		if err != nil {
			if a.starvedNodes[n.Name] != n.UID {
				a.problem(n, n.UID, ReasonSubnetExhausted, err.Error())
			}
			a.starvedNodes[n.Name] = n.UID
			a.clearNode(n)
			continue
		}
		a.give(n, subnets)
	}
}

// inherit gives a node the subnets that it had: before it was deleted, or, when
// the ledger does not go back that far, those that its pods have addresses in.
// Otherwise pods that run would have to change their addresses.
func (a *assignment) inherit(n *cluster.Node) bool {
	if had := a.before.get(n.Name); len(had) > 0 && a.subnets.claim(n.Name, had) == nil {
		a.give(n, had)
		return true
	}
	for _, name := range a.s.PodsOn(n.Name) {
		p := a.s.Pods[name]
		if p.Annotated == nil || !p.WantsNetwork() {
			continue
		}
		var subnets []netip.Prefix
		for _, ip := range p.Annotated.IPs {
			subnets = append(subnets, ip.Masked())
		}
		if a.subnets.regular(subnets) && a.subnets.claim(n.Name, subnets) == nil {
			a.give(n, subnets)
			return true
		}
	}
	return false
}

func (a *assignment) give(n *cluster.Node, subnets []netip.Prefix) {
	a.grantNode(n, subnets)
	a.patched[n.Name] = true
}

func (a *assignment) grantNode(n *cluster.Node, subnets []netip.Prefix) {
	a.Ledger.nodes[n.Name] = newNodeLease(n.UID, subnets)
	delete(a.starvedNodes, n.Name)
	a.before.drop(n.Name)
	a.Changes = append(a.Changes, a.s.GrantNode(n.Name, subnets))
	for _, p := range a.s.PodsOn(n.Name) {
		a.pods[p] = true
	}
}

// clearNode removes what a node that gets nothing says it holds: after a
// restart it would be believed.
func (a *assignment) clearNode(n *cluster.Node) {
	if len(n.Annotated) > 0 || n.AnnotatedAs != "" {
		a.patched[n.Name] = true
	}
}

// patchNodes writes what nodes hold, each node's in one patch. A node that was
// set up by hand is no object of the API server.
func (a *assignment) patchNodes() {
	for _, name := range sortedKeys(a.patched) {
		n := a.s.Nodes[name]
		if n.ByHand {
			continue
		}
		p := Patch{Ref: n.Ref(), UID: n.UID}
		write := func(key, value string, said bool) {
			switch {
			case value != "":
				if p.Annotations == nil {
					p.Annotations = map[string]string{}
				}
				p.Annotations[key] = value
			case said:
				p.Remove = append(p.Remove, key)
			}
		}
		subnets, join := "", ""
		if lease := a.Ledger.nodes[name]; lease != nil {
			subnets = annotation.MarshalNodeSubnets(lease.subnets)
		}
		if number, held := a.join.number[name]; held {
			join = annotation.MarshalGatewayJoinAddrs(a.join.addrs(number))
		}
		write(annotation.NodeSubnets, subnets, len(n.Annotated) > 0 || n.AnnotatedAs != "")
		write(annotation.GatewayJoinAddrs, join, len(n.JoinAnnotated) > 0 || n.JoinAs != "")
		a.Patches = append(a.Patches, p)
	}
}
