package master

import (
	"context"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// connected is how often hasOwners looks whether there is a session.
const connected = 50 * time.Millisecond

// hasOwners waits for a session with the Northbound database, and tells whether objects of a kind have rows there. Then
// the kind was served when a master last looked. It is false when ctx ends.
func hasOwners(ctx context.Context, session func() *ovsdb.Session, k cluster.Kind) bool {
	tick := time.NewTicker(connected)
	defer tick.Stop()
	for {
		if s := session(); s != nil {
			return slices.ContainsFunc(s.Owners(), func(o nb.Owner) bool { return isOf(o, k) })
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// isOf is true for the owner of what an object of a kind has. Owners have the names of their kinds; a definition owns
// what its network has once.
func isOf(o nb.Owner, k cluster.Kind) bool {
	if k == cluster.KindMultiNetworkPolicy && o.Kind == names.KindNetworkIsolation {
		return true // a policy without rules has no other rows
	}
	network, name := names.NetworkOf(o.Name)
	namespace, _, defined := network.Definition()
	switch k {
	case cluster.KindNetworkDefinition:
		return o.Kind == names.KindCluster && defined && name == names.ClusterOwner
	case cluster.KindUserNetwork:
		return o.Kind == names.KindCluster && name == names.UserOwner && namespace != ""
	case cluster.KindClusterUserNetwork:
		return o.Kind == names.KindCluster && name == names.UserOwner && namespace == ""
	}
	return o.Kind == names.Kind(k)
}
