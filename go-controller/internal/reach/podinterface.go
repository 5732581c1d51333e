package reach

import (
	"fmt"
	"io"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// PodInterface explains what policies make of a pod's interface in a network that is neither the cluster's own nor the
// pod's primary one.
type PodInterface struct {
	Name     string      `json:"name"`    // "net1"
	Network  string      `json:"network"` // "shop/blue"; of a ClusterUserDefinedNetwork "shared"
	Policies []Selecting `json:"policies"`
	In       []string    `json:"openIn"`
	Out      []string    `json:"openOut"`
}

// interfaces explains the further interfaces that a pod has, in the order in which it asks for them.
func (c *Cluster) interfaces(pod *cluster.Pod) (out []PodInterface) {
	primary, _ := c.State.Primary(pod.Name.Namespace)
	for a := range c.State.Attachments(pod) {
		network := c.State.Networks[a.Network]
		_, granted := c.State.In(a.Network).PodNetworks[cluster.PodPort{Pod: pod.Name, Interface: a.Interface}]
		if a.Interface == "" || a.Network == primary || network == nil || !granted {
			continue
		}
		all := named(names.KindMultiPolicy, c.policiesIn(a.Network, pod))
		d, _ := cluster.DefinitionOf(a.Network)
		i := PodInterface{Name: a.Interface, Network: d.String(), Policies: []Selecting{}}
		for k, p := range all {
			all[k].unaddressed = len(network.Subnets) == 0
			i.Policies = append(i.Policies, p.selecting())
		}
		i.In, i.Out = openFurther(all, ingress), openFurther(all, egress)
		out = append(out, i)
	}
	return out
}

// openFurther is what open says of an interface in a network without nodes and ClusterNetworkPolicies.
func openFurther(all []namedPolicy, d direction) []string {
	by := isolatingOf(all, d)
	if len(by) == 0 {
		return open(all, nil, d)
	}
	out := []string{}
	for _, p := range by {
		out = append(out, p.rules(d)...)
	}
	if len(out) == 0 {
		out = append(out, "nothing: the policies with "+d.policyType()+" have no rule that allows anything")
	}
	return out
}

// writeText prints the explanation for people.
func (i PodInterface) writeText(w io.Writer) {
	fmt.Fprintf(w, "\nInterface %s in network %s\n", i.Name, i.Network)
	writePolicies(w, i.Policies)
	for _, text := range i.In {
		fmt.Fprintf(w, "  open in   %s\n", text)
	}
	for _, text := range i.Out {
		fmt.Fprintf(w, "  open out  %s\n", text)
	}
}

// namedPolicy is a policy that isolates pods, with its name on the command line.
type namedPolicy struct {
	*cluster.NetworkPolicy
	object      string // "np/shop/web"
	unaddressed bool   // its network has no subnets, so that the addresses of pods are not known
}

func named(kind names.Kind, policies []*cluster.NetworkPolicy) []namedPolicy {
	out := make([]namedPolicy, len(policies))
	for i, p := range policies {
		out[i] = namedPolicy{NetworkPolicy: p, object: objectOf(nb.Owner{Kind: kind, Name: p.Name.String()})}
	}
	return out
}

// isolatingOf lists those of the policies that isolate pods in a direction.
func isolatingOf(all []namedPolicy, d direction) (out []namedPolicy) {
	for _, p := range all {
		if d.of(p.NetworkPolicy).Isolates {
			out = append(out, p)
		}
	}
	return out
}

// selecting is the policy with the directions in which it isolates pods.
func (p namedPolicy) selecting() Selecting {
	s := Selecting{Name: p.object}
	if p.Written != nil {
		s.NoRules = cluster.ReasonNamespaceLimit
	}
	for _, d := range []direction{ingress, egress} {
		if d.of(p.NetworkPolicy).Isolates {
			s.Types = append(s.Types, d.policyType())
		}
	}
	return s
}

// rules says what the rules of a direction allow.
func (p namedPolicy) rules(d direction) (out []string) {
	for i, r := range rulesOf(p.NetworkPolicy, d) {
		left := ""
		if p.unaddressed {
			whole := r
			r = r.WithoutPods()
			if len(r.Peers) < len(whole.Peers) || len(r.Ports) < len(whole.Ports) {
				left = " (selectors of pods and names of ports match nothing: the network has no subnets)"
			}
		}
		out = append(out, fmt.Sprintf("%s %s, %s: %s %s%s", d.side(), peersText(r), portsText(r), p.object, fieldOf(d, i),
			left))
	}
	return out
}
