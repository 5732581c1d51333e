package assign

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Reasons of the Problems of this package.
const (
	ReasonSubnetRefused   = "NodeSubnetRefused"
	ReasonSubnetExhausted = "ClusterSubnetExhausted"
	ReasonAddressRefused  = "PodAddressRefused"
	ReasonAddressGone     = "NodeSubnetExhausted"
)

// nodeLease is a node's subnets and the pods' addresses in them.
type nodeLease struct {
	uid     string
	subnets []netip.Prefix
	pools   []*pool
	pending bool // a patch is on its way: the object does not show it yet
}

func newNodeLease(uid string, subnets []netip.Prefix) *nodeLease {
	l := &nodeLease{uid: uid, subnets: subnets}
	for _, p := range subnets {
		l.pools = append(l.pools, newPool(p))
	}
	return l
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
		for _, n := range a.s.PodsOn(name) {
			a.pods[n] = true
			a.releasePod(n)
		}
		a.before[name] = lease.subnets
		a.subnets.release(name, lease.subnets)
		delete(a.Ledger.nodes, name)
		a.Changes = append(a.Changes, a.s.GrantNode(name, nil))
		for n := range a.starvedNodes {
			a.nodes[n] = true
		}
	}
}

// claimNodes hears what nodes say they hold, the oldest first.
func (a *assignment) claimNodes() {
	for _, n := range a.sortedNodes() {
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

// confirmNode compares what a node says with what it holds.
func (a *assignment) confirmNode(n *cluster.Node, lease *nodeLease) {
	switch {
	case n.AnnotatedAs == "" && slices.Equal(n.Annotated, lease.subnets):
		lease.pending = false
		return
	case lease.pending:
		return
	case n.AnnotatedAs != "":
		a.problem(n, n.UID, ReasonSubnetRefused, fmt.Sprintf("%s: %v is written again", n.AnnotatedAs, lease.subnets))
	case len(n.Annotated) > 0:
		a.problem(n, n.UID, ReasonSubnetRefused, fmt.Sprintf("annotation %s: %v is not what the node holds: %v is written again",
			annotation.NodeSubnets, n.Annotated, lease.subnets))
	}
	a.patchNode(n, lease)
}

func (a *assignment) allocateNodes() {
	for _, n := range a.sortedNodes() {
		if a.Ledger.nodes[n.Name] != nil {
			continue
		}
		subnets, err := a.subnets.allocate(n.Name, a.before[n.Name])
		if err != nil {
			if !a.starvedNodes[n.Name] {
				a.problem(n, n.UID, ReasonSubnetExhausted, err.Error())
			}
			a.starvedNodes[n.Name] = true
			continue
		}
		a.grantNode(n, subnets)
		a.patchNode(n, a.Ledger.nodes[n.Name])
	}
}

func (a *assignment) grantNode(n *cluster.Node, subnets []netip.Prefix) {
	a.Ledger.nodes[n.Name] = newNodeLease(n.UID, subnets)
	delete(a.starvedNodes, n.Name)
	delete(a.before, n.Name)
	a.Changes = append(a.Changes, a.s.GrantNode(n.Name, subnets))
	for _, p := range a.s.PodsOn(n.Name) {
		a.pods[p] = true
	}
}

func (a *assignment) patchNode(n *cluster.Node, lease *nodeLease) {
	lease.pending = true
	a.Patches = append(a.Patches, Patch{Ref: n.Ref(), UID: n.UID,
		Annotations: map[string]string{annotation.NodeSubnets: annotation.MarshalNodeSubnets(lease.subnets)}})
}
