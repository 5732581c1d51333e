package reach

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/explain"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// PodPolicies explains a pod: its rows, the policies that select it, and what these leave open.
type PodPolicies struct {
	*explain.Owner
	Policies   []Selecting    `json:"policies"`             // about eth0, and about the primary network
	In         []string       `json:"openIn"`               // who may connect to the pod there, by which rule
	Out        []string       `json:"openOut"`              // whom the pod may connect to
	Interfaces []PodInterface `json:"interfaces,omitempty"` // in other networks
}

// Selecting is a policy that selects a pod.
type Selecting struct {
	Name  string             `json:"name"`           // "np/shop/web", "cnp/guard", "multinetworkpolicy/shop/web"
	Types []string           `json:"types"`          // Ingress, Egress
	Tier  cluster.PolicyTier `json:"tier,omitempty"` // of a ClusterNetworkPolicy
	// NoRules is the reason of the Event that says why none of its rules is in effect.
	NoRules string `json:"noRules,omitempty"`
}

// OfPod explains a pod. problems are those of the whole cluster.
func OfPod(c *core.Core, name cluster.Name, problems []cluster.Problem) (*PodPolicies, error) {
	owner, err := explain.OfOwner(c, nb.Owner{Kind: names.KindPod, Name: name.String()}, problems)
	if err != nil {
		return nil, err
	}
	out := &PodPolicies{Owner: owner, Policies: []Selecting{}}
	asked := &Cluster{Core: c}
	pod := c.State.Pods[name]
	all, above := named(names.KindPolicy, asked.selecting(pod)), asked.ordering(pod)
	locked := c.State.Locked(name)
	if n, _ := c.State.Primary(name.Namespace); locked && n != "" {
		all = append(all, named(names.KindMultiPolicy, asked.policiesIn(n, pod))...)
	}
	for _, p := range above {
		s := Selecting{Name: tieredName(p), Types: []string{}, Tier: p.Tier}
		for _, d := range []direction{ingress, egress} {
			if len(tieredRules(p, d)) > 0 {
				s.Types = append(s.Types, d.policyType())
			}
		}
		out.Policies = append(out.Policies, s)
	}
	for _, p := range all {
		out.Policies = append(out.Policies, p.selecting())
	}
	out.In, out.Out = open(all, above, ingress), open(all, above, egress)
	out.Interfaces = asked.interfaces(pod)
	if locked {
		eth0 := "from its own node alone"
		if open := c.State.Opens(pod); open != (cluster.OpenPorts{}) {
			eth0 = fmt.Sprintf("from its own node; also to %s from other pods and nodes, as far as ClusterNetworkPolicies "+
				"and tenants allow (annotation %s)", open, annotation.OpenPorts)
		}
		out.In = inBoth(eth0, "from its own node", out.In)
		out.Out = inBoth("to nobody", "to its own node", out.Out)
	} else if t := owner.Tenant; t != nil && !t.Global() {
		out.In, out.Out = withinTenant(t.Name, "from", out.In), withinTenant(t.Name, "to", out.Out)
	}
	return out, nil
}

// inBoth says what is open to a pod of a primary network: by its eth0, and by its interface in that network, in which
// its node is not.
func inBoth(eth0, node string, open []string) []string {
	out := []string{"by eth0: " + eth0}
	for _, text := range open {
		if text != node {
			out = append(out, "by "+names.PrimaryInterface+": "+text)
		}
	}
	return out
}

// open says what policies leave open in a direction, in the order in which they are asked.
func open(all []namedPolicy, above []*cluster.TieredPolicy, d direction) []string {
	by, rules, side := isolatingOf(all, d), ruling(above, d), d.side()
	switch {
	case len(all)+len(above) == 0:
		return []string{"everything: no policy selects it"}
	case len(by)+len(rules) == 0:
		return []string{"everything: no policy with " + d.policyType() + " selects it"}
	}
	out := openTier(rules, cluster.AdminTier, d, side)
	if len(by) == 0 {
		out = append(out, openTier(rules, cluster.BaselineTier, d, side)...)
		return append(out, "everything else: no NetworkPolicy with "+d.policyType()+" selects it")
	}
	out = append(out, side+" its own node")
	for _, p := range by {
		out = append(out, p.rules(d)...)
	}
	return out
}

// openTier says what the rules of a tier do.
func openTier(policies []*cluster.TieredPolicy, tier cluster.PolicyTier, d direction, side string) []string {
	var out []string
	for _, p := range policies {
		for i, r := range tieredRules(p, d) {
			if p.Tier == tier {
				out = append(out, fmt.Sprintf("%s %s %s, %s: %s %s", r.Action, side, peersText(r.PolicyRule),
					portsText(r.PolicyRule), tieredName(p), fieldOf(d, i)))
			}
		}
	}
	return out
}

// Peers of rules without selectors, as text.
const (
	everybody = "everybody"
	nobody    = "nobody"
)

// peersText is whom a rule names.
func peersText(r cluster.PolicyRule) string {
	if r.AnyPeer {
		return everybody
	}
	var out []string
	for _, p := range r.Peers {
		out = append(out, peerTexts(p)...)
	}
	if len(out) == 0 {
		return nobody
	}
	return strings.Join(out, " and ")
}

// peerTexts is whom a peer names; of many ranges of addresses, some.
func peerTexts(p cluster.PolicyPeer) (out []string) {
	const most = 3
	switch {
	case p.Pods != nil:
		return []string{p.Pods.String()}
	case p.Nodes != nil && p.Nodes.All():
		out = append(out, "all nodes")
	case p.Nodes != nil:
		out = append(out, "nodes "+p.Nodes.String())
	case p.Domain != "":
		out = append(out, p.Domain)
	}
	for i, a := range p.Addresses {
		if i == most && len(p.Addresses) > most+1 {
			return append(out, fmt.Sprintf("%d more ranges", len(p.Addresses)-most))
		}
		out = append(out, a.String())
	}
	return out
}

// portsText is to which ports.
func portsText(r cluster.PolicyRule) string {
	if r.AnyPort {
		return "all ports"
	}
	var out []string
	for _, p := range r.Ports {
		text := strings.ToLower(string(p.Protocol))
		switch {
		case p.Name != "":
			text += "/" + p.Name
		case p.First != 0 && p.First == p.Last:
			text += fmt.Sprintf("/%d", p.First)
		case p.First != 0:
			text += fmt.Sprintf("/%d-%d", p.First, p.Last)
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "no port"
	}
	return strings.Join(out, " ")
}

// WriteJSON prints the explanation as one JSON object.
func (p *PodPolicies) WriteJSON(w io.Writer) error { return writeJSON(w, p) }

// WriteText prints the explanation for people.
func (p *PodPolicies) WriteText(w io.Writer) error {
	if err := p.Owner.WriteText(w); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if len(p.Policies) > 0 {
		fmt.Fprintln(b, "\nPolicies")
	}
	writePolicies(b, p.Policies)
	fmt.Fprintf(b, "\nOpen in\n  %s\n\nOpen out\n  %s\n", strings.Join(p.In, "\n  "), strings.Join(p.Out, "\n  "))
	for _, i := range p.Interfaces {
		i.writeText(b)
	}
	return b.Flush()
}

func writePolicies(w io.Writer, policies []Selecting) {
	for _, s := range policies {
		fmt.Fprintf(w, "  %s  %s", s.Name, strings.Join(s.Types, ", "))
		if s.Tier != "" {
			fmt.Fprintf(w, "  tier %s", s.Tier)
		}
		if s.NoRules != "" {
			fmt.Fprintf(w, "  none of its rules is in effect: %s", s.NoRules)
		}
		fmt.Fprintln(w)
	}
}
