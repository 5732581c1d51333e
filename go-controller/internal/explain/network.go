package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// network is the kind of what OfNetwork explains.
const network = "Network"

// OfNetwork explains the network of a NetworkAttachmentDefinition, a UserDefinedNetwork, or, for a name without a
// namespace, a ClusterUserDefinedNetwork: what is wrong with it, which pods are in it, and the rows that it has once.
func OfNetwork(c *core.Core, name cluster.Name, problems []cluster.Problem) (*Owner, error) {
	s, n := c.State, names.Defined(name.Namespace, name.Name)
	if s.NetworkDefinitions[name] == nil && s.UserNetwork(name) == nil {
		return nil, fmt.Errorf("there is no NetworkAttachmentDefinition, UserDefinedNetwork or "+
			"ClusterUserDefinedNetwork %s", name)
	}
	out := &Owner{Kind: network, Name: name.String(), Problems: []string{}, Rows: Rows{},
		owner: nb.Owner{Kind: names.KindCluster, Name: n.Owner(names.UserOwner)}}
	if there := s.Networks[n]; there != nil {
		out.owner.Name = there.ClusterOwner()
	}
	rows, reports, err := rowsOf(c, out.owner)
	if err != nil {
		return nil, err
	}
	out.Rows = rows
	for _, p := range append(slices.Clone(problems), reports...) {
		text := p.Error()
		if p.Ref.Kind.Defines() && p.Ref.Name == name && !slices.Contains(out.Problems, text) {
			out.Problems = append(out.Problems, text)
		}
	}
	granted := s.In(n).PodNetworks
	for _, p := range slices.SortedFunc(maps.Keys(granted), func(a, b cluster.PodPort) int {
		return cmp.Or(cluster.CompareNames(a.Pod, b.Pod), cmp.Compare(a.Interface, b.Interface))
	}) {
		line := fmt.Sprintf("%s %s: %s", p.Pod, p.Interface, granted[p].MAC)
		for _, ip := range ipnet.Addrs(granted[p].IPs) {
			line += " " + ip.String()
		}
		out.Pods = append(out.Pods, line)
	}
	return out, nil
}
