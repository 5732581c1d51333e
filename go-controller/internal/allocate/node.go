package allocate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Reasons of the Problems of this package.
const (
	ReasonNameReserved     = "NodeNameReserved"
	ReasonSubnetRefused    = "NodeSubnetRefused"
	ReasonSubnetExhausted  = "ClusterSubnetExhausted"
	ReasonJoinRefused      = "GatewayJoinAddressRefused"
	ReasonJoinExhausted    = "JoinSubnetExhausted"
	ReasonAddressRefused   = "PodAddressRefused"
	ReasonAddressGone      = "NodeSubnetExhausted"
	ReasonNetworkFull      = "NetworkSubnetExhausted"
	ReasonAttachment       = "PodNetworkUnavailable"
	ReasonNoPrimary        = "NoPrimaryNetwork"
	ReasonIPAMClaimRefused = "ClaimRefused"
)

// nodeLease is a node's subnets and the pods' addresses in them; in a network of one switch, those of the network.
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

// release takes addresses back, one of each pool. They wait with what was freed.
func (l *nodeLease) release(numbers []uint64, freed *freedSet) {
	for i, number := range numbers {
		l.pools[i].release(number)
		freed.add(ipnet.Single(l.pools[i].addr(number)))
	}
}

// newSharedLease is the subnets of a network of one switch.
func newSharedLease(n *cluster.Network) *nodeLease {
	l := &nodeLease{}
	for _, c := range n.Subnets {
		l.subnets = append(l.subnets, c.CIDR)
		l.pools = append(l.pools, newSharedPool(c.CIDR, n))
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
		lease, node := u.book.nodes[name], u.s.Nodes[name]
		if node == nil {
			delete(u.waitingNodes, name)
		}
		if lease == nil || node != nil && node.UID == lease.uid {
			continue
		}
		if node != nil {
			if claimed, ok, err := u.claimedSubnets(node); err == nil && (!ok || slices.Equal(claimed, lease.subnets)) {
				lease.uid = node.UID // made anew under its name: the node and its pods keep what they have
				continue
			}
		}
		for _, port := range u.lookAtPodsOn(name) {
			u.releasePod(port)
		}
		u.former.put(name, lease.subnets)
		u.releaseSubnets(name, lease)
	}
}

// releaseSubnets takes back a node's subnets. Pods that waited there for an address in them now wait for a subnet.
func (u *update) releaseSubnets(node string, lease *nodeLease) {
	delete(u.waitingPods, node)
	u.subnets.release(node, lease.subnets)
	u.freed.add(lease.subnets...)
	delete(u.book.nodes, node)
	u.Changes = append(u.Changes, u.s.GrantNode(u.network.Name, node, nil))
}

// releaseIdleNodes takes back the subnets of nodes that none of the network's pods is on any more, while other nodes
// wait for subnets. Without need a node keeps its own, so that a pod which is made anew costs no switch.
func (u *update) releaseIdleNodes() {
	if u.network.Hosts || !slices.ContainsFunc(sortedKeys(u.waitingNodes), u.hasAskers) {
		return
	}
	for _, name := range sortedKeys(u.book.nodes) {
		if u.hasAskers(name) {
			continue
		}
		u.releaseSubnets(name, u.book.nodes[name])
		u.patched[name] = true
	}
}

// claimNodes grants nodes the subnets that they claim: first those that their switches have, and then the oldest node
// first. Subnets that allocate would never grant, such as those of an older --cluster-subnets, come last: a node that
// claims everything gets only what is left.
func (u *update) claimNodes() {
	var claims []nodeClaim
	for _, n := range u.sortedNodes() {
		subnets, _, err := u.claimedSubnets(n)
		recorded := len(subnets) > 0 && slices.Equal(subnets, u.switchSubnets(n.Name))
		claims = append(claims, nodeClaim{n, subnets, err, recorded, u.subnets.regular(subnets...)})
	}
	slices.SortStableFunc(claims, func(x, y nodeClaim) int {
		return cmp.Or(cluster.CompareBool(!x.recorded, !y.recorded), cluster.CompareBool(!x.regular, !y.regular))
	})
	for _, c := range claims {
		lease := u.book.nodes[c.Name]
		switch {
		case lease != nil:
			u.confirmNode(c, lease)
		case c.err != nil:
			u.problem(c.Node, c.UID, ReasonSubnetRefused, c.err.Error()+": new subnets are given out")
			u.patched[c.Name] = true
		case len(c.subnets) > 0:
			if err := u.subnets.claim(c.Name, c.subnets); err != nil {
				u.problem(c.Node, c.UID, ReasonSubnetRefused,
					fmt.Sprintf("annotation %s: %v: new subnets are given out", annotation.NodeSubnets, err))
				u.patched[c.Name] = true // after a restart the claim would be believed
				continue
			}
			u.grantNode(c.Node, c.subnets)
		}
	}
}

// nodeClaim is the subnets that a node claims.
type nodeClaim struct {
	*cluster.Node
	subnets  []netip.Prefix
	err      error // why the annotation can't be read
	recorded bool  // the node's switch has the subnets
	regular  bool  // allocate could grant them
}

// switchSubnets is the subnets of a node's switch in this network, as the database has them.
func (u *update) switchSubnets(node string) []netip.Prefix {
	return u.s.SwitchSubnets[u.network.Name.Owner(node)]
}

// claimedSubnets is the subnets that a node claims; ok is false when it claims none.
func (u *update) claimedSubnets(n *cluster.Node) (subnets []netip.Prefix, ok bool, err error) {
	if !u.network.Hosts && !strings.Contains(n.Annotated, string(u.network.Name)) { // a malformed one is reported once
		return nil, false, nil
	}
	return u.read.Subnets(n.Annotated, u.network.Name)
}

// confirmNode has a node's annotation written again when it is not what the node holds. While a patch is on its way,
// another change of the node leads to the same patch again, which does no harm. Leaving it out could keep what a user
// wrote at that moment.
func (u *update) confirmNode(c nodeClaim, lease *nodeLease) {
	switch {
	case c.err != nil:
		u.problem(c.Node, c.UID, ReasonSubnetRefused, fmt.Sprintf("%v: %v is written again", c.err, lease.subnets))
	case slices.Equal(c.subnets, lease.subnets):
		return
	case len(c.subnets) > 0:
		u.problem(c.Node, c.UID, ReasonSubnetRefused,
			fmt.Sprintf("annotation %s: %v is not what the node holds: %v is written again",
				annotation.NodeSubnets, c.subnets, lease.subnets))
	}
	u.patched[c.Name] = true
}

// allocateNodes grants subnets to nodes that have none. Nodes that had subnets get those back, before the others get
// what is free.
func (u *update) allocateNodes() {
	var wanting []*cluster.Node
	for _, n := range u.sortedNodes() {
		if u.book.nodes[n.Name] == nil && u.hasAskers(n.Name) && !u.restoreNode(n) {
			wanting = append(wanting, n)
		}
	}
	for _, n := range wanting {
		subnets, ok := u.subnets.allocate(n.Name)
		if ok {
			u.grantNode(n, subnets)
			u.patched[n.Name] = true
			continue
		}
		if u.waitingNodes[n.Name] != n.UID {
			u.reportNoSubnet(n)
		}
		u.waitingNodes[n.Name] = n.UID
	}
}

// settleLacking records on which nodes pods wait for a subnet of the node.
func (u *update) settleLacking() {
	if u.network.Hosts {
		return
	}
	before := u.s.In(u.network.Name).Lacking
	for _, node := range sortedKeys(before) {
		if u.waitingNodes[node] == "" {
			u.Changes = append(u.Changes, u.s.DenyNode(u.network.Name, node, false))
		}
	}
	for _, node := range sortedKeys(u.waitingNodes) {
		if lacking := u.hasAskers(node); lacking != before[node] {
			u.Changes = append(u.Changes, u.s.DenyNode(u.network.Name, node, lacking))
		}
	}
}

func (u *update) reportNoSubnet(n *cluster.Node) {
	reason, ranges, who, remedy := ReasonSubnetExhausted, "the cluster subnets", "the node waits", "--cluster-subnets"
	if !u.network.Hosts {
		reason, ranges, who, remedy = ReasonNetworkFull, "the network's subnets", "the network's pods there wait", "subnets"
	}
	u.problem(n, n.UID, reason, fmt.Sprintf("no subnet for the node is free in %s %v: %s for one; widen %s or remove "+
		"nodes; those of a deleted Node are free a minute after its last pod has ended", ranges, u.subnets.ranges, who,
		remedy))
}

// restoreNode grants a node the subnets that it had before it was deleted. When the ledger does not go back that far,
// it grants those that the node's switch has in the database. With other subnets running pods would lose their
// addresses. What the pods' annotations say does not count: whoever may create a pod may write them.
func (u *update) restoreNode(n *cluster.Node) bool {
	for _, subnets := range [][]netip.Prefix{u.former.held[n.Name], u.switchSubnets(n.Name)} {
		if len(subnets) > 0 && u.subnets.claim(n.Name, subnets) == nil {
			u.grantNode(n, subnets)
			u.patched[n.Name] = true
			return true
		}
	}
	return false
}

func (u *update) grantNode(n *cluster.Node, subnets []netip.Prefix) {
	u.book.nodes[n.Name] = newNodeLease(n.UID, subnets)
	delete(u.waitingNodes, n.Name)
	u.former.drop(n.Name)
	u.Changes = append(u.Changes, u.s.GrantNode(u.network.Name, n.Name, subnets))
	u.lookAtPodsOn(n.Name)
}

// lookAtStrays has the annotations written again of nodes that have strays.
func (u *update) lookAtStrays(nodes map[string]bool) {
	for name := range nodes {
		if n := u.s.Nodes[name]; n != nil && len(u.strays(n)) > 0 {
			u.patched[name] = true
		}
	}
}

// strays lists the keys of a node's entries of further networks in which it holds nothing of the kind. A patch with the
// entry may have been under way when the network went or became another, or a master may have ended before it removed
// the entry. If a definition is refused when a master starts, its entries stay: when it is good again, the nodes get
// their subnets back. Keys of another form stay, too: a newer version may have written them.
func (u *update) strays(n *cluster.Node) (out []names.Network) {
	stray := func(network names.Network, held map[string][]netip.Prefix) bool {
		namespace, name, ok := network.Definition()
		if u.ledger.books[network] != nil {
			return ok && len(held[n.Name]) == 0
		}
		return ok && !u.s.Defined(namespace, name)
	}
	for key := range u.read.SubnetKeys(n.Annotated) {
		if network, _ := names.EntryOf(string(key)); key == network && stray(network, u.s.In(network).NodeSubnets) {
			out = append(out, key)
		}
	}
	for key := range u.read.JoinKeys(n.JoinAnnotated) {
		network, _ := names.EntryOf(string(key))
		held := u.s.In(network)
		switch {
		case key == network && stray(network, held.JoinAddrs),
			key == network.ExitEntry() && stray(network, held.ExitAddrs):
			out = append(out, key)
		}
	}
	return out
}

// patchNodes writes what nodes hold, one patch a node, and removes their strays. A node that was set up by hand is no
// object of the API server.
func (u *update) patchNodes() {
	for _, name := range sortedKeys(u.patched) {
		n := u.s.Nodes[name]
		if n == nil || n.ByHand {
			continue
		}
		subnets, join := map[names.Network][]netip.Prefix{}, map[names.Network][]netip.Prefix{}
		for _, network := range u.closed {
			subnets[network], join[network], join[network.ExitEntry()] = nil, nil, nil
		}
		for _, key := range u.strays(n) {
			subnets[key], join[key] = nil, nil // what a node holds in a network that is there comes next
		}
		for network, b := range u.ledger.books {
			held := u.s.In(network)
			subnets[network], join[network] = held.NodeSubnets[name], held.JoinAddrs[name]
			if b.network.Primary {
				join[network.ExitEntry()] = held.ExitAddrs[name]
			}
		}
		p := Patch{Ref: n.Ref(), UID: n.UID, Found: n.Found}
		p.set(annotation.NodeSubnets, n.Annotated, annotation.SetNodeSubnets(n.Annotated, subnets))
		p.set(annotation.GatewayJoinAddrs, n.JoinAnnotated, annotation.SetGatewayJoinAddrs(n.JoinAnnotated, join))
		u.Patches = append(u.Patches, p)
	}
}
