package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// What the conditions have as reasons: those of the large upstream project, which tools of users know.
const (
	conditionCreated   = "NetworkCreated"
	conditionError     = "SyncError"
	conditionAllocated = "NetworkAllocationSucceeded"
	conditionLacking   = "InternalError"
)

// reasonOutdone is the reason of a Problem with a primary network of a namespace that has an older one.
const reasonOutdone = "OlderPrimaryNetwork"

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

// joinedOrLeft lists the owner of a network that somebody has deleted, if a pod has got an interface in it, or has it
// no longer: the condition names these pods.
func joinedOrLeft(s *cluster.State, c cluster.Change) []nb.Owner {
	name, ok := cluster.DefinitionOf(c.Network)
	if u := s.UserNetwork(name); c.Granted && ok && u != nil && u.Deleting {
		return []nb.Owner{definedOwner(name, names.UserOwner)}
	}
	return nil
}

// selecting lists the owners of ClusterUserDefinedNetworks that select a namespace now, and did not before, or the
// other way round: the condition names the namespaces.
func selecting(s *cluster.State, c cluster.Change) (out []nb.Owner) {
	old, _ := c.Old.(*cluster.Namespace)
	now, _ := c.New.(*cluster.Namespace)
	for _, u := range s.ClusterUserNetworks {
		if joins(u, old) != joins(u, now) {
			out = append(out, definedOwner(u.Name, names.UserOwner))
		}
	}
	return out
}

// joins is true when pods of a namespace may be in the network of a ClusterUserDefinedNetwork.
func joins(u *cluster.UserNetwork, n *cluster.Namespace) bool {
	primary := u.Network != nil && u.Network.Primary
	return n != nil && u.Selects != nil && u.Selects.Selects(n.Labels) && (!primary || n.InPrimary())
}

// claiming lists the owners of the networks that are to be the primary one of a namespace, if another is now: their
// conditions and reports say which is.
func claiming(s *cluster.State, c cluster.Change) (out []nb.Owner) {
	for _, namespace := range c.About(index.PrimaryOf) {
		for _, n := range s.PrimaryClaims(namespace.Name) {
			name, _ := cluster.DefinitionOf(n)
			out = append(out, definedOwner(name, names.ClusterOwner), definedOwner(name, names.UserOwner))
		}
	}
	return out
}

// outdone reports the namespaces that have an older primary network than this one.
func outdone(s *cluster.State, n names.Network, r cluster.Ref, uid string) (out []cluster.Problem) {
	var namespaces []string
	for _, namespace := range s.NamespacesOf(r) {
		claims, ns := s.PrimaryClaims(namespace), s.Namespaces[namespace]
		if ns != nil && ns.InPrimary() && slices.Contains(claims, n) && claims[0] != n {
			older, _ := cluster.DefinitionOf(claims[0])
			namespaces = append(namespaces, fmt.Sprintf("%s (%s)", namespace, older))
		}
	}
	if len(namespaces) == 0 {
		return nil
	}
	slices.Sort(namespaces)
	return []cluster.Problem{{Ref: r, UID: uid, Reason: reasonOutdone, Message: "these namespaces have an older primary " +
		"network, in which their pods stay: " + few(namespaces, 10) + "; delete one of the two networks"}}
}

// joining says which namespaces' pods may be in the network of a ClusterUserDefinedNetwork.
func joining(s *cluster.State, u *cluster.UserNetwork) string {
	var namespaces []string
	own, primary := names.Defined(u.Name.Namespace, u.Name.Name), u.Network != nil && u.Network.Primary
	for name, n := range s.Namespaces {
		if in, _ := s.Primary(name); joins(u, n) && (!primary || in == own) {
			namespaces = append(namespaces, name)
		}
	}
	if len(namespaces) == 0 {
		return "none"
	}
	slices.Sort(namespaces)
	return few(namespaces, 10)
}

// few lists the first texts, and says how many more there are.
func few(texts []string, most int) string {
	if more := len(texts) - most; more > 0 {
		texts = append(slices.Clip(texts[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// keeping says which pods keep a network that somebody has deleted.
func keeping(s *cluster.State, u *cluster.UserNetwork) string {
	seen := map[cluster.Name]bool{}
	for port := range s.In(names.Defined(u.Name.Namespace, u.Name.Name)).PodNetworks {
		seen[port.Pod] = true
	}
	var pods []string
	for _, pod := range slices.SortedFunc(maps.Keys(seen), cluster.CompareNames) {
		pods = append(pods, pod.String())
	}
	return few(pods, 3)
}

// allocated is the condition that tells whether nodes lack subnets of a network; created is the one that tells whether
// the network is there.
func allocated(s *cluster.State, u *cluster.UserNetwork, created cluster.Condition) cluster.Condition {
	c := cluster.Condition{Type: cluster.TypeNetworkAllocated, True: true, Reason: conditionAllocated,
		Message: "every node that pods of the network are on has what it needs in it"}
	if !created.True {
		c.True, c.Reason, c.Message = false, created.Reason, "the network has nothing on nodes: see "+created.Type
		return c
	}
	lacking := s.In(names.Defined(u.Name.Namespace, u.Name.Name)).Lacking
	if nodes := slices.Sorted(maps.Keys(lacking)); len(nodes) > 0 {
		c.True, c.Reason = false, conditionLacking
		c.Message = "no subnet of the network is free for these nodes, and its pods there wait: " + few(nodes, 10)
	}
	return c
}

// userRows is the rows of the network that a user defines, and the conditions of its status.
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
		c.Message = "the pods of the selected namespaces that have the label " + names.PrimaryLabel +
			" are in the network: " + joining(s, u)
	case shared:
		c.Message = "pods of the selected namespaces can ask for an interface in the network: " + joining(s, u)
	case primary:
		c.Message = "the pods of the namespace are in the network if it has the label " + names.PrimaryLabel
	}
	if u.Deleting && s.InUse(u) {
		c.Message = "somebody has deleted the network: it stays while pods have interfaces in it: " + keeping(s, u)
	}
	for _, r := range outdone(s, names.Defined(u.Name.Namespace, u.Name.Name), u.Ref(), u.UID) {
		out.Reports = append(out.Reports, r)
		if shared { // other namespaces may be in it
			c.Message += "; " + r.Message
		} else {
			c.True, c.Reason, c.Message = false, conditionError, r.Message
		}
	}
	if reason, why := s.RefusesUserNetwork(u); reason != "" {
		c.True, c.Reason, c.Message = false, conditionError, why
		if u.Network != nil { // else the decoder has reported it
			out.Reports = append(out.Reports, cluster.Problem{Ref: u.Ref(), UID: u.UID, Reason: reason, Message: why})
		}
	}
	if c.True {
		out.Reports = append(out.Reports, overlapping(s, u.Network, u.Ref(), u.UID)...)
	}
	out.Judged = &cluster.Judged{Ref: u.Ref(), UID: u.UID, Conditions: []cluster.Condition{c, allocated(s, u, c)}}
	if c, ok := mapped(s, u, c); ok {
		out.Judged.Conditions = append(out.Judged.Conditions, c)
	}
	return out, nil
}
