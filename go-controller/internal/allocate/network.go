package allocate

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// renew takes back all that a network that was deleted or changed granted, and begins a new book for one that exists.
// What the annotations claim is granted again if it is right. The rest waits, as what is freed does.
func (u *update) renew(c cluster.Change) {
	n, freed := names.Network(c.Ref.Name.Name), newFreedSet()
	freed.now = u.book.freed.now
	if old := u.books[n]; old != nil {
		u.releaseAll(old)
		delete(u.books, n)
		u.gone, freed = append(u.gone, n), old.freed
	}
	if network, ok := c.New.(*cluster.Network); ok {
		u.books[n] = newBook(network, freed)
		u.books[n].fresh = true
		for _, pod := range u.s.PodsIn(n) {
			u.lookAt(u.s.Pods[pod])
		}
	}
}

// releaseAll takes back every grant in a network, and has the annotations of all holders written.
func (u *update) releaseAll(b *book) {
	for port := range b.pods {
		b.freePod(port)
		u.Changes = append(u.Changes, u.s.GrantPod(b.network.Name, port, nil))
		if p := u.s.Pods[port.Pod]; p != nil && p.WantsNetwork() {
			u.patchedPods = append(u.patchedPods, p)
		}
	}
	for _, node := range sortedKeys(b.nodes) {
		b.freed.add(b.nodes[node].subnets...)
		u.Changes = append(u.Changes, u.s.GrantNode(b.network.Name, node, nil))
		u.patched[node] = true
	}
	for _, node := range sortedKeys(b.join.number) {
		b.join.release(node)
		u.Changes = append(u.Changes, u.s.GrantJoin(b.network.Name, node, nil))
		u.patched[node] = true
	}
}
