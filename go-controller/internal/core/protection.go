package core

import (
	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// protections are the finalizers that networks need after these changes: each that users define has one until it is
// deleted and no pod has an interface in it.
func (c *Core) protections(changes []cluster.Change) (out []allocate.Patch) {
	seen := map[*cluster.UserNetwork]bool{}
	for _, change := range changes {
		u := c.protected(change)
		if u == nil || seen[u] {
			continue
		}
		seen[u] = true
		switch {
		case !u.Deleting && !u.Protected, u.Deleting && u.Protected && !c.State.InUse(u):
			out = append(out, allocate.Patch{Ref: u.Ref(), UID: u.UID, Finalizers: &allocate.Finalizers{
				Found: u.Finalizers, Name: cluster.Finalizer, Remove: u.Deleting}})
		}
	}
	return out
}

// protected is the network that users define and that a change is about: the object itself, what a pod was granted in
// its network, or a NetworkAttachmentDefinition that has or had its name.
func (c *Core) protected(change cluster.Change) *cluster.UserNetwork {
	if u, ok := change.New.(*cluster.UserNetwork); ok {
		return u
	}
	if change.Ref.Kind == cluster.KindNetworkDefinition {
		return c.State.UserNetwork(change.Ref.Name)
	}
	if !change.Granted || change.Ref.Kind != cluster.KindPod {
		return nil
	}
	if name, ok := cluster.DefinitionOf(change.Network); ok {
		return c.State.UserNetwork(name)
	}
	return nil
}
