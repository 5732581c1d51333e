package allocate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// followNetworks closes the books of networks that are gone, or that are others than before, and opens those of new
// ones. It lists the networks whose books are new.
func (u *update) followNetworks() (opened map[names.Network]bool) {
	for _, name := range sortedKeys(u.ledger.books) {
		if u.s.Networks[name] != u.ledger.books[name].network {
			u.close(name)
		}
	}
	for _, name := range sortedKeys(u.s.Networks) {
		if u.ledger.books[name] != nil {
			continue
		}
		b := newBook(u.s.Networks[name], u.ledger.freedIn(name))
		delete(u.ledger.kept, name)
		u.ledger.books[name] = b
		if opened == nil {
			opened = map[names.Network]bool{}
		}
		opened[name] = true
	}
	return opened
}

// close takes back everything in a network. If there is one of its name again, pods may have the same addresses as
// before at once. What was freed before still waits.
func (u *update) close(name names.Network) {
	b := u.ledger.books[name]
	delete(u.ledger.books, name)
	u.ledger.kept[name] = b.freed
	u.closed = append(u.closed, name)
	for _, port := range slices.SortedFunc(maps.Keys(b.pods), comparePorts) {
		u.freeWithoutNode(b, b.pods[port])
		u.Changes = append(u.Changes, u.s.GrantPod(name, port, nil))
		if pod := u.s.Pods[port.Pod]; pod != nil && pod.WantsNetwork() {
			u.patchedPods = append(u.patchedPods, pod)
		}
	}
	for _, node := range sortedKeys(b.nodes) {
		u.Changes = append(u.Changes, u.s.GrantNode(name, node, nil))
		u.patched[node] = true
	}
	for _, node := range sortedKeys(b.join.number) {
		u.Changes = append(u.Changes, u.s.GrantJoin(name, node, nil))
		u.patched[node] = true
	}
	for _, node := range sortedKeys(b.exits) {
		u.releaseExit(exit{name, node}, b)
	}
}

// freeWithoutNode frees the addresses of a pod whose Node went in the same update as the network: the pod may run on.
func (u *update) freeWithoutNode(b *book, lease *podLease) {
	if node := cmp.Or(b.shared, b.nodes[lease.node]); node != nil && u.s.Nodes[lease.node] == nil {
		node.release(lease.numbers, b.freed)
	}
}

// lookAtPrimary has the pods looked at whose primary network may be another after a change of a Namespace, or of what
// defines networks.
func (u *update) lookAtPrimary(c cluster.Change) {
	if !u.ledger.updated || !u.mayMovePrimary(c) { // in the first update every pod is news itself
		return
	}
	var pods []cluster.Name
	switch c.Ref.Kind {
	case cluster.KindClusterUserNetwork:
		for pod := range u.s.Pods {
			if u.s.Locked(pod) || u.s.Namespaces[pod.Namespace] == nil {
				pods = append(pods, pod)
			}
		}
	case cluster.KindNamespace:
		pods = u.s.PodsIn(c.Ref.Name.Name)
	default:
		pods = u.s.PodsIn(c.Ref.Name.Namespace)
	}
	for _, pod := range pods {
		u.lookAt(u.s.Pods[pod])
	}
}

// mayMovePrimary is true for a change after which pods may have another primary network.
func (u *update) mayMovePrimary(c cluster.Change) bool {
	primary := func(o cluster.Object) bool {
		switch o := o.(type) {
		case *cluster.Namespace:
			return o.InPrimary()
		case *cluster.NetworkDefinition:
			return o.Network != nil && o.Network.Primary
		case *cluster.UserNetwork:
			return o.Network != nil && o.Network.Primary
		}
		return u.s.AnyPrimary()
	}
	was, _ := c.Old.(*cluster.Namespace)
	is, _ := c.New.(*cluster.Namespace)
	if was != nil && is != nil && was.InPrimary() == is.InPrimary() {
		return is.InPrimary() && was.Labels != is.Labels // a ClusterUserDefinedNetwork selects by them
	}
	if primary(c.Old) || primary(c.New) {
		return true
	}
	if !c.Ref.Kind.Defines() {
		return false
	}
	// A definition hides a UserDefinedNetwork of its name, and both a ClusterUserDefinedNetwork.
	hidden, shared := u.s.UserNetworks[c.Ref.Name], u.s.ClusterUserNetworks[c.Ref.Name.Name]
	return hidden != nil && primary(hidden) || shared != nil && primary(shared)
}

func comparePorts(x, y cluster.PodPort) int {
	return cmp.Or(cluster.CompareNames(x.Pod, y.Pod), cmp.Compare(x.Interface, y.Interface))
}

// lookAtAskers has the pods looked at that ask for an interface in a network.
func (u *update) lookAtAskers(n names.Network) {
	for _, pod := range u.s.PodsAskingFor(n) {
		u.lookAt(u.s.Pods[pod])
	}
}

// lookAtAskersOn has the pods on these nodes looked at that ask for an interface in this network.
func (u *update) lookAtAskersOn(nodes map[string]bool) {
	if len(nodes) == 0 {
		return
	}
	if u.network.Primary {
		for node := range nodes {
			u.lookAtPodsOn(node)
		}
		return
	}
	for _, name := range u.s.PodsAskingFor(u.network.Name) {
		if !nodes[u.s.Pods[name].Node] {
			continue
		}
		for _, p := range u.portsOf(name) {
			u.pods[p] = true
		}
	}
}

// lookAtHosts has the nodes looked at of the pods that are. In the cluster's own network, pods change nothing of nodes.
func (u *update) lookAtHosts() {
	if u.network.Hosts || u.shared != nil && !u.network.Primary {
		return
	}
	for p := range u.pods {
		if pod := u.s.Pods[p.Pod]; pod != nil && pod.Node != "" {
			u.nodes[pod.Node] = true
		}
	}
}

// portsOn lists the interfaces that pods on a node ask for in this network.
func (u *update) portsOn(node string) (out []cluster.PodPort) {
	for _, n := range u.s.PodsOn(node) {
		out = append(out, u.portsOf(n)...)
	}
	return out
}

// portsOf lists the interfaces that a pod asks for in this network.
func (u *update) portsOf(pod cluster.Name) (out []cluster.PodPort) {
	for a := range u.s.Attachments(u.s.Pods[pod]) {
		if a.Network == u.network.Name {
			out = append(out, cluster.PodPort{Pod: pod, Interface: a.Interface})
		}
	}
	return out
}

// hasAskers is true when pods on a node ask for an interface in this network. In the cluster's own, all do. A node gets
// no subnets in a network that none of its pods is in: a definition alone costs no rows on nodes.
func (u *update) hasAskers(node string) bool { return u.network.Hosts || len(u.portsOn(node)) > 0 }

// lookAtAllNodes has all nodes looked at in this network.
func (u *update) lookAtAllNodes() {
	for n := range u.s.Nodes {
		if n != names.JoinSwitch {
			u.nodes[n] = true
		}
	}
}
