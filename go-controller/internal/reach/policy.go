package reach

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/explain"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// Policy explains a policy: its rows, the pods that it selects, and the peers that its rules match.
type Policy struct {
	*explain.Owner
	Selects []string     `json:"selects"` // "shop/web-0"; null while its pods wait for a primary network
	Rules   []PolicyRule `json:"rules"`
}

// PolicyRule is a rule of a policy, or a direction in which it allows nothing.
type PolicyRule struct {
	Field  string `json:"field"`            // "spec.ingress[0]", "spec.egress"
	Action string `json:"action,omitempty"` // Accept, Deny or Pass; of a ClusterNetworkPolicy
	Peers  []Peer `json:"peers"`
	Ports  string `json:"ports,omitempty"` // "tcp/80", "all ports"; empty for a direction without rules

	side string // "from" or "to"
}

// Peer is whom a rule matches.
type Peer struct {
	Text   string   `json:"peer"`             // "pods app=web of namespace shop", "192.0.2.0/24", "everybody"
	Pods   []string `json:"pods"`             // that the selector selects in the policy's networks; null for other peers
	Ranges []string `json:"ranges,omitempty"` // all ranges of addresses, of which the text names some
	DNS    bool     `json:"dns,omitempty"`    // in a primary network the rule matches the ClusterIPs of the cluster's DNS
}

// maxPods is how many pods the text names when there are at least two others.
const maxPods = 5

// OfPolicy explains a policy of a kind. problems are those of the whole cluster.
func OfPolicy(c *core.Core, kind names.Kind, name string, problems []cluster.Problem) (*Policy, error) {
	owner, err := explain.OfOwner(c, nb.Owner{Kind: kind, Name: name}, problems)
	if err != nil {
		return nil, err
	}
	s, n, asked := c.State, cluster.ParseName(name), &Cluster{Core: c}
	out := &Policy{Owner: owner, Rules: []PolicyRule{}}
	switch kind {
	case names.KindClusterPolicy:
		p, m := s.ClusterNetworkPolicies[name], members{asked, tieredNetworks(s, name)}
		out.Selects = m.of(p.Pods)
		for _, d := range []direction{ingress, egress} {
			for i, r := range tieredRules(p, d) {
				out.Rules = append(out.Rules, m.rule(d, i, string(r.Action), r.PolicyRule))
			}
		}
	case names.KindMultiPolicy:
		p := s.MultiNetworkPolicies[n]
		out.isolating(members{asked, p.Networks}, &p.NetworkPolicy)
	default:
		if network, ok := s.PolicyNetwork(n.Namespace); ok {
			out.isolating(members{asked, []names.Network{network}}, s.NetworkPolicies[n])
		}
	}
	return out, nil
}

// isolating says which pods a policy selects that denies what it does not allow, and whom its rules match.
func (p *Policy) isolating(m members, of *cluster.NetworkPolicy) {
	p.Selects = m.of(of.Subject())
	for _, d := range []direction{ingress, egress} {
		if !d.of(of).Isolates {
			continue
		}
		rules := rulesOf(of, d)
		for i, r := range rules {
			p.Rules = append(p.Rules, m.rule(d, i, "", r))
		}
		if len(rules) == 0 {
			p.Rules = append(p.Rules, PolicyRule{Field: field(d), Peers: []Peer{}, side: d.side()})
		}
	}
}

// members knows which pods selectors select in the networks that a policy is about.
type members struct {
	*Cluster
	networks []names.Network
}

func (m members) of(s cluster.PodSelector) []string {
	out := []string{}
	for _, selection := range m.selections(m.networks, s) {
		for _, pod := range selection.Pods() {
			out = append(out, pod.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// anyPrimary is true when the policy is about a primary network other than the cluster's own.
func (m members) anyPrimary() bool {
	return slices.ContainsFunc(m.networks, func(n names.Network) bool {
		network := m.State.Networks[n]
		return network != nil && network.Primary
	})
}

func (m members) rule(d direction, i int, action string, r cluster.PolicyRule) PolicyRule {
	out := PolicyRule{Field: fieldOf(d, i), Action: action, Peers: []Peer{}, Ports: portsText(r), side: d.side()}
	if r.AnyPeer {
		out.Peers = []Peer{{Text: everybody}}
	}
	for _, p := range r.Peers {
		if p.Pods != nil {
			pods := m.of(*p.Pods)
			dns := d == egress && len(pods) == 0 && m.anyPrimary() && m.selectsDNS(*p.Pods)
			out.Peers = append(out.Peers, Peer{Text: p.Pods.String(), Pods: pods, DNS: dns})
			continue
		}
		other := Peer{Text: strings.Join(peerTexts(p), " and ")}
		for _, a := range p.Addresses {
			other.Ranges = append(other.Ranges, a.String())
		}
		out.Peers = append(out.Peers, other)
	}
	return out
}

// someOf names some of the pods, and says how many others there are.
func someOf(pods []string) string {
	switch more := len(pods) - maxPods; {
	case len(pods) == 0:
		return "no pod"
	case more > 1:
		return strings.Join(pods[:maxPods], ", ") + fmt.Sprintf(" and %d more pods", more)
	}
	return strings.Join(pods, ", ")
}

func (r PolicyRule) text() string {
	if r.Ports == "" {
		return r.Field + ": allows nothing"
	}
	var peers []string
	for _, p := range r.Peers {
		switch {
		case p.DNS:
			p.Text += " (the ClusterIPs of the cluster's DNS)"
		case p.Pods != nil:
			p.Text += " (" + someOf(p.Pods) + ")"
		}
		peers = append(peers, p.Text)
	}
	if len(peers) == 0 {
		peers = []string{nobody}
	}
	return strings.TrimSpace(r.Field+": "+r.Action) + " " + r.side + " " + strings.Join(peers, " and ") + ", " + r.Ports
}

// WriteJSON prints the explanation as one JSON object.
func (p *Policy) WriteJSON(w io.Writer) error { return writeJSON(w, p) }

// WriteText prints the explanation for people.
func (p *Policy) WriteText(w io.Writer) error {
	if err := p.Owner.WriteText(w); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if p.Selects != nil {
		fmt.Fprintf(b, "\nSelects\n  %s\n", someOf(p.Selects))
	}
	if len(p.Rules) > 0 {
		fmt.Fprintln(b, "\nRules")
	}
	for _, r := range p.Rules {
		fmt.Fprintf(b, "  %s\n", r.text())
	}
	return b.Flush()
}
