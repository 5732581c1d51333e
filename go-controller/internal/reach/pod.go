package reach

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/explain"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// PodPolicies explains a pod: its rows, the policies that select it, and what these leave open.
type PodPolicies struct {
	*explain.Owner
	Policies []Selecting `json:"policies"`
	In       []string    `json:"openIn"`  // who may connect to the pod, by which rule
	Out      []string    `json:"openOut"` // whom the pod may connect to
}

// Selecting is a policy that selects a pod.
type Selecting struct {
	Name  string   `json:"name"`  // "np/shop/web"
	Types []string `json:"types"` // Ingress, Egress
}

// OfPod explains a pod. problems are those of the whole cluster.
func OfPod(c *core.Core, name cluster.Name, problems []cluster.Problem) (*PodPolicies, error) {
	owner, err := explain.OfOwner(c, nb.Owner{Kind: names.KindPod, Name: name.String()}, problems)
	if err != nil {
		return nil, err
	}
	out := &PodPolicies{Owner: owner, Policies: []Selecting{}}
	all := (&Cluster{Core: c}).selecting(c.State.Pods[name])
	for _, p := range all {
		s := Selecting{Name: "np/" + p.Name.String()}
		for _, d := range []direction{ingress, egress} {
			if len(isolating([]*cluster.NetworkPolicy{p}, d)) > 0 {
				s.Types = append(s.Types, d.policyType())
			}
		}
		out.Policies = append(out.Policies, s)
	}
	out.In, out.Out = open(all, ingress), open(all, egress)
	return out, nil
}

// open says what policies leave open in a direction.
func open(all []*cluster.NetworkPolicy, d direction) []string {
	by, side := isolating(all, d), "from"
	if d == egress {
		side = "to"
	}
	switch {
	case len(all) == 0:
		return []string{"everything: no policy selects it"}
	case len(by) == 0:
		return []string{"everything: no policy with " + d.policyType() + " selects it"}
	}
	out := []string{side + " its own node"}
	for _, p := range by {
		for i, r := range rulesOf(p, d) {
			out = append(out, fmt.Sprintf("%s %s, %s: np/%s %s", side, peersText(r), portsText(r), p.Name, fieldOf(d, i)))
		}
	}
	return out
}

// peersText is whom a rule names.
func peersText(r cluster.PolicyRule) string {
	const most = 3
	if r.AnyPeer {
		return "everybody"
	}
	var out []string
	for _, p := range r.Peers {
		if p.Pods != nil {
			out = append(out, p.Pods.String())
			continue
		}
		for i, a := range p.Addresses {
			if i == most && len(p.Addresses) > most+1 {
				out = append(out, fmt.Sprintf("%d more ranges", len(p.Addresses)-most))
				break
			}
			out = append(out, a.String())
		}
	}
	if len(out) == 0 {
		return "nobody"
	}
	return strings.Join(out, " and ")
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
	for _, s := range p.Policies {
		fmt.Fprintf(b, "  %s  %s\n", s.Name, strings.Join(s.Types, ", "))
	}
	fmt.Fprintf(b, "\nOpen in\n  %s\n\nOpen out\n  %s\n", strings.Join(p.In, "\n  "), strings.Join(p.Out, "\n  "))
	return b.Flush()
}
