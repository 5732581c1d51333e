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

// Reasons of the condition about the network outside, which is this project's own.
const (
	conditionMapped   = "NodesHaveBridges"
	conditionUnmapped = reasonUnbridged
	conditionUnknown  = "NoNodeReports"
)

// reasonUnbridged is the reason of a Problem with a NetworkAttachmentDefinition, which has no status.
const reasonUnbridged = "NodesWithoutBridge"

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

// unbridged lists the nodes that lack a bridge to the network outside that a network is joined to, sorted. Pods of the
// network don't start there. known is how many nodes' agents have reported which bridges they have; others are not
// listed.
func unbridged(s *cluster.State, n *cluster.Network) (nodes []string, known int) {
	if n == nil || n.Topology != cluster.Localnet {
		return nil, 0
	}
	for name, node := range s.Nodes {
		if node.Reports() {
			known++
		}
		if node.Unbridged(n.Physical.Name) {
			nodes = append(nodes, name)
		}
	}
	slices.Sort(nodes)
	return nodes, known
}

// withoutBridge says which nodes lack a bridge to the network outside that a network is joined to. It does not say how
// many these are: where most nodes lack it, each that comes would change what was reported.
func withoutBridge(n *cluster.Network, nodes []string) string {
	const most = 10
	list := strings.Join(nodes[:min(len(nodes), most)], ", ")
	if len(nodes) > most {
		list += " and more"
	}
	return fmt.Sprintf("pods of the network don't start on these nodes, which have no bridge for physical network %s: %s; "+
		"see --bridge-mappings of the node agent", n.Physical.Name, list)
}

// bridging lists the owners of networks of topology Localnet whose condition or report names a node since it has
// changed, or names it no longer.
func bridging(s *cluster.State, c cluster.Change) (out []nb.Owner) {
	old, _ := c.Old.(*cluster.Node)
	now, _ := c.New.(*cluster.Node)
	if old.SameBridges(now) {
		return nil
	}
	for _, n := range s.Networks {
		physical := n.Physical.Name
		if n.Topology == cluster.Localnet && (old.Unbridged(physical) != now.Unbridged(physical) ||
			old.Reports() != now.Reports()) {
			out = append(out, nb.Owner{Kind: names.KindCluster, Name: n.ClusterOwner()})
		}
	}
	return out
}

// mapped is the condition that tells whether every node has a bridge to the network outside; ok is false for a network
// that is joined to none.
func mapped(s *cluster.State, u *cluster.UserNetwork, created cluster.Condition) (c cluster.Condition, ok bool) {
	if u.Network == nil || u.Network.Topology != cluster.Localnet {
		return c, false
	}
	c = cluster.Condition{Type: cluster.TypeNetworkMapped, True: true, Reason: conditionMapped,
		Message: "every node whose agent reports its bridges has one for physical network " + u.Network.Physical.Name}
	switch nodes, known := unbridged(s, u.Network); {
	case known == 0:
		c.True, c.Reason, c.Message = false, conditionUnknown, "no node's agent has reported its bridges yet"
	case len(nodes) > 0:
		c.True, c.Reason, c.Message = false, conditionUnmapped, withoutBridge(u.Network, nodes)
	}
	if !created.True {
		c.True, c.Reason, c.Message = false, created.Reason, "the network is not joined to anything: see "+created.Type
	}
	return c, true
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
	out.Judged = &cluster.Judged{Ref: u.Ref(), UID: u.UID, Conditions: []cluster.Condition{c, allocated(s, u, c)}}
	if c, ok := mapped(s, u, c); ok {
		out.Judged.Conditions = append(out.Judged.Conditions, c)
	}
	return out, nil
}
