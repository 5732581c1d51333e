package policy

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

// opened matches what the pods of primary networks on a node let in by their interfaces in the cluster's own network: a
// term for all pods that open the same ports.
func opened(s *cluster.State, node string) []string {
	pods := map[cluster.OpenPorts][]string{}
	for _, name := range s.PodsOn(node) {
		p := s.Pods[name]
		if open := s.Opens(p); open != (cluster.OpenPorts{}) && p.WantsNetwork() {
			port := fmt.Sprintf("outport == %q", names.Own.LogicalPort(name.Namespace, name.Name, ""))
			pods[open] = append(pods[open], port)
		}
	}
	var out []string
	for open := range pods {
		out = append(out, fmt.Sprintf("((%s) && (%s) && (%s))", strings.Join(pods[open], " || "), inCluster(s),
			matchOpen(open.List())))
	}
	slices.Sort(out)
	return out
}

// inCluster matches packets with a source in the cluster's own network: those of pods and nodes.
func inCluster(s *cluster.State) string {
	ranges := map[names.Family][]string{}
	for _, c := range s.Config.Subnets {
		f := names.FamilyOf(c.CIDR.Addr().Is4())
		ranges[f] = append(ranges[f], c.CIDR.String())
	}
	var out []string
	for _, f := range s.Config.Families() {
		out = append(out, translate.OneOf(f, "src", ranges[f]))
	}
	return strings.Join(out, " || ")
}

// matchOpen matches packets to these ports.
func matchOpen(ports []cluster.OpenPort) string {
	numbers := map[string][]string{}
	var out []string
	for _, p := range ports {
		if p.Number == 0 {
			out = append(out, "icmp4", "icmp6")
			continue
		}
		numbers[p.Protocol] = append(numbers[p.Protocol], fmt.Sprint(p.Number))
	}
	for _, protocol := range slices.Sorted(maps.Keys(numbers)) {
		out = append(out, fmt.Sprintf("%s.dst == {%s}", protocol, strings.Join(numbers[protocol], ", ")))
	}
	return strings.Join(out, " || ")
}

// openers lists the nodes whose pods may open other ports after a change.
func openers(s *cluster.State, c cluster.Change) []nb.Owner {
	nodes := map[string]bool{}
	add := func(o cluster.Object) {
		if p, ok := o.(*cluster.Pod); ok && p != nil && p.Opens != (cluster.OpenPorts{}) && p.Node != "" {
			nodes[p.Node] = true
		}
	}
	if c.Ref.Kind == cluster.KindPod && !c.Granted {
		add(c.Old)
		add(c.New)
	}
	for _, namespace := range c.About(index.PrimaryOf) {
		for _, name := range s.PodsIn(namespace.Name) {
			add(s.Pods[name])
		}
	}
	var out []nb.Owner
	for _, n := range slices.Sorted(maps.Keys(nodes)) {
		out = append(out, nb.Owner{Kind: names.KindIsolation, Name: n})
	}
	return out
}
