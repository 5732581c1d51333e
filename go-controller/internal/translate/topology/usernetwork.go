package topology

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// What the condition has as reasons: those of the large upstream project, which tools of users know.
const (
	conditionCreated = "NetworkCreated"
	conditionError   = "SyncError"
)

// definedOwner is an owner of what the network of a definition has once.
func definedOwner(definition cluster.Name, owner string) nb.Owner {
	network := names.Defined(definition.Namespace, definition.Name)
	return nb.Owner{Kind: names.KindCluster, Name: network.Owner(owner)}
}

// refused lists the owners of networks that users define and that are not served: they have no rows, but a condition.
func refused(s *cluster.State) (out []nb.Owner) {
	for _, k := range []cluster.Kind{cluster.KindUserNetwork, cluster.KindClusterUserNetwork} {
		for o := range s.Objects(k) {
			if u, ok := o.(*cluster.UserNetwork); ok {
				if reason, _ := s.RefusesUserNetwork(u); reason != "" {
					out = append(out, definedOwner(u.Name, names.UserOwner))
				}
			}
		}
	}
	return out
}

// userRows is the rows of the network that a user defines, and the condition of its status.
func (t Cluster) userRows(s *cluster.State, o nb.Owner, u *cluster.UserNetwork) (translate.Rows, error) {
	out, err := t.rows(s, o)
	if err != nil {
		return out, err
	}
	c := cluster.Condition{Type: cluster.TypeNetworkCreated, True: true, Reason: conditionCreated,
		Message: "pods of the namespace can ask for an interface in the network"}
	shared, primary := u.Name.Namespace == "", u.Network != nil && u.Network.Primary
	switch {
	case shared && primary:
		c.Message = "the pods of the selected namespaces that have the label " + names.PrimaryLabel + " are in the network"
	case shared:
		c.Message = "pods of the selected namespaces can ask for an interface in the network"
	case primary:
		c.Message = "the pods of the namespace are in the network if it has the label " + names.PrimaryLabel
	}
	if reason, why := s.RefusesUserNetwork(u); reason != "" {
		c.True, c.Reason, c.Message = false, conditionError, why
		if u.Network != nil { // else the decoder has reported it
			out.Reports = append(out.Reports, cluster.Problem{Ref: u.Ref(), UID: u.UID, Reason: reason, Message: why})
		}
	}
	out.Judged = &cluster.Judged{Ref: u.Ref(), UID: u.UID, Condition: c}
	return out, nil
}
