package allocate

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// exit is where pods on a node leave a primary network.
type exit struct {
	network names.Network
	node    string
}

func compareExits(a, b exit) int {
	return cmp.Or(cmp.Compare(a.network, b.network), cmp.Compare(a.node, b.node))
}

// exitLease is the addresses of an exit, one for each of the pools of its node's subnets.
type exitLease struct {
	at      *nodeLease
	numbers []uint64
}

// holder is what the pools of a node have in place of a pod's name. No pod has it: it contains a space.
func (e exit) holder() cluster.Name { return cluster.Name{Name: "exit of " + string(e.network)} }

// holder tells whose an address is.
func holder(n cluster.Name) string {
	if n.Namespace == "" {
		return n.Name
	}
	return "Pod " + n.String()
}

// lookAtExits has the exits looked at that nodes have, or need for the pods on them.
func (u *update) lookAtExits(nodes map[string]bool) {
	if !u.s.AnyPrimary() {
		return
	}
	for node := range nodes {
		for _, pod := range u.s.PodsOn(node) {
			if n, _ := u.s.Primary(pod.Namespace); n != "" {
				u.exits[exit{n, node}] = true
			}
			for a := range u.s.Attachments(u.s.Pods[pod]) { // it may ask for a network that is another namespace's primary
				if b := u.ledger.books[a.Network]; b != nil && b.network.Primary {
					u.exits[exit{a.Network, node}] = true
				}
			}
		}
		for name, b := range u.ledger.books {
			if n := u.s.Nodes[node]; b.network.Primary && (b.uses(node) || n != nil && b.mayClaim(n)) {
				u.exits[exit{name, node}] = true
			}
		}
	}
}

// uses is true when a node has something in the network.
func (b *book) uses(node string) bool {
	_, joined := b.join.number[node]
	return joined || b.nodes[node] != nil || b.exits[node] != nil || b.waitingNodes[node] != ""
}

// nodesOf lists the nodes of the exits that are to be looked at, of a primary network.
func (u *update) nodesOf(n names.Network) map[string]bool {
	out := map[string]bool{}
	for e := range u.exits {
		if e.network == n {
			out[e.node] = true
		}
	}
	return out
}

// wantsExit is true when pods on a node are in a primary network.
func (u *update) wantsExit(e exit) bool {
	n := u.s.Networks[e.network]
	return n != nil && n.Primary && u.book.nodes[e.node] != nil && u.hasPrimaryPods(e.node, e.network)
}

// hasPrimaryPods is true when pods on a node are in a primary network. The pods of each node are looked at once in an
// update, not once for each network.
func (u *update) hasPrimaryPods(node string, n names.Network) bool {
	of, known := u.primaries[node]
	if !known {
		of = map[names.Network]bool{}
		for _, pod := range u.s.PodsOn(node) {
			if in, _ := u.s.Primary(pod.Namespace); in != "" && u.s.Pods[pod].WantsNetwork() {
				of[in] = true
			}
		}
		u.primaries[node] = of
	}
	return of[n]
}

// claimExits takes back the addresses of exits that no pod needs, and grants those that nodes claim. Pods' claims come
// later: a node's claim is the master's own record, a pod's may be anybody's.
func (u *update) claimExits() {
	u.lookAtExits(u.nodes)
	for _, e := range slices.SortedFunc(maps.Keys(u.exits), compareExits) {
		b := u.ledger.books[e.network]
		if b == nil {
			continue
		}
		held, wanted := b.exits[e.node], u.wantsExit(e)
		if held != nil && (!wanted || held.at != u.book.nodes[e.node]) {
			u.releaseExit(e, b)
			held = nil
		}
		n := u.s.Nodes[e.node]
		if n == nil {
			continue
		}
		claimed, ok, err := u.claimedExit(e.network, n)
		switch {
		case ok && !wanted:
			if lease := u.book.nodes[e.node]; lease != nil {
				u.freeUnneeded(claimed, lease.subnets)
			}
			u.patched[e.node] = true
		case err != nil || ok && held != nil && !slices.Equal(claimed, held.addrs()), !ok && held != nil:
			u.patched[e.node] = true
		case ok && held == nil:
			u.claimExit(e, claimed)
		}
	}
}

// claimExit grants an exit the addresses that its node claims.
func (u *update) claimExit(e exit, claimed []netip.Prefix) {
	numbers, err := u.book.nodes[e.node].claim(e.holder(), claimed)
	if err != nil {
		n := u.s.Nodes[e.node]
		u.problem(n, n.UID, ReasonJoinRefused, fmt.Sprintf("annotation %s: entry %q: %v: it is written anew",
			annotation.GatewayJoinAddrs, e.network.ExitEntry(), err))
		return
	}
	u.grantExit(e, numbers)
}

// allocateExits grants addresses to exits that have none.
func (u *update) allocateExits() {
	for _, e := range slices.SortedFunc(maps.Keys(u.exits), compareExits) {
		b := u.ledger.books[e.network]
		if b == nil || b.exits[e.node] != nil || !u.wantsExit(e) {
			delete(u.waitingExits, e)
			continue
		}
		numbers, err := u.book.nodes[e.node].take(port{PodPort: cluster.PodPort{Pod: e.holder()}}, u.freed)
		if err == nil {
			u.grantExit(e, numbers)
			u.patched[e.node] = true
			continue
		}
		if n := u.s.Nodes[e.node]; !u.waitingExits[e] {
			u.problem(n, n.UID, ReasonAddressGone, fmt.Sprintf("%v: pods of network %s do not reach the outside from this "+
				"node until one is; one that a pod had is free after a minute", err, e.network))
		}
		u.waitingExits[e] = true
	}
}

func (u *update) grantExit(e exit, numbers []uint64) {
	lease := &exitLease{u.book.nodes[e.node], numbers}
	u.ledger.books[e.network].exits[e.node] = lease
	delete(u.waitingExits, e)
	u.Changes = append(u.Changes, u.s.GrantExit(e.network, e.node, lease.addrs()))
}

// releaseExit takes back what an exit has; b is the book of its network.
func (u *update) releaseExit(e exit, b *book) {
	lease := b.exits[e.node]
	lease.at.release(lease.numbers, u.ledger.freed)
	delete(b.exits, e.node)
	u.patched[e.node] = true
	u.Changes = append(u.Changes, u.s.GrantExit(e.network, e.node, nil))
}

// addrs is the addresses of an exit.
func (l *exitLease) addrs() (out []netip.Prefix) {
	for i, pool := range l.at.pools {
		out = append(out, netip.PrefixFrom(pool.addr(l.numbers[i]), pool.subnet.Bits()))
	}
	return out
}

// claimedExit is the addresses of an exit of a network that a node claims; ok is false when it claims none.
func (u *update) claimedExit(in names.Network, n *cluster.Node) (addrs []netip.Prefix, ok bool, err error) {
	return u.read.Joins(n.JoinAnnotated).In(in.ExitEntry())
}
