package kinds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// clusterPolicy decodes a ClusterNetworkPolicy with this spec, by default of tier Admin and priority 7.
func clusterPolicy(t *testing.T, spec string) (*cluster.TieredPolicy, []cluster.Problem) {
	t.Helper()
	u := &unstructured.Unstructured{}
	text := "apiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\n" +
		"metadata: {name: p, uid: u}\nspec: " + spec
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	for field, value := range map[string]any{"tier": "Admin", "priority": int64(7)} {
		if spec := u.Object["spec"].(map[string]any); spec[field] == nil {
			spec[field] = value
		}
	}
	o, problems := kinds.ClusterNetworkPolicy(config.DefaultPolicies()).Decode(u)
	return o.(*cluster.TieredPolicy), problems
}

// inWords is what a rule says.
func inWords(r cluster.TieredRule) string {
	var out []string
	if r.AnyPeer {
		out = append(out, "anybody")
	}
	for _, p := range r.Peers {
		switch {
		case p.Pods != nil:
			out = append(out, p.Pods.String())
		case p.Nodes != nil:
			out = append(out, "nodes "+p.Nodes.String())
		case p.Domain != "":
			out = append(out, p.Domain)
		default:
			out = append(out, fmt.Sprint(p.Addresses))
		}
	}
	if r.AnyPort {
		out = append(out, "any port")
	}
	for _, p := range r.Ports {
		out = append(out, fmt.Sprintf("%s %s %d-%d", p.Protocol, p.Name, p.First, p.Last))
	}
	return string(r.Action) + ": " + strings.Join(out, "; ")
}

// All that the API documents is read.
func TestDecodeClusterPolicy(t *testing.T) {
	p, problems := clusterPolicy(t, `{subject: {pods: {namespaceSelector: {matchLabels: {team: a}}, podSelector:
  {matchLabels: {app: web}}}},
  ingress: [{name: first, action: Accept, from: [{namespaces: {}}, {pods: {podSelector: {matchLabels: {app: x}}}}]}],
  egress: [{action: Deny, to: [{networks: [10.1.2.3/8, '2001:db8::/32']}, {nodes: {matchLabels: {role: w}}}],
    protocols: [{tcp: {destinationPort: {number: 80}}}, {tcp: {destinationPort: {range: {start: 81, end: 90}}}},
      {udp: {destinationPort: {number: 53}}}, {sctp: {destinationPort: {number: 5}}}]},
    {action: Pass, to: [{namespaces: {}}], protocols: [{destinationNamedPort: http}]}]}`)
	if len(problems) != 0 || p.Tier != cluster.AdminTier || p.Priority != 7 || p.Ingress[0].Name != "first" ||
		p.Pods.String() != "pods app=web of namespaces team=a" {
		t.Errorf("%+v, problems %v", p, problems)
	}
	for i, want := range []string{"Accept: all pods of all namespaces; pods app=x of all namespaces; any port",
		"Deny: [10.0.0.0/8]; [2001:db8::/32]; nodes role=w; SCTP  5-5; TCP  80-90; UDP  53-53",
		"Pass: all pods of all namespaces; SCTP http 0-0; TCP http 0-0; UDP http 0-0"} {
		if got := inWords(append(p.Ingress, p.Egress...)[i]); got != want {
			t.Errorf("rule %d: %s, want %s", i, got, want)
		}
	}
}

// A rule with anything that is not valid or not known fails closed, and one Problem says so.
func TestClusterPolicyFailsClosed(t *testing.T) {
	list := func(item string, n int) string { return "[" + strings.Repeat(item+",", n) + item + "]" }
	for _, c := range []struct{ rule, reason, text string }{
		{`to: [{}]`, "InvalidPolicyPeer", "to[0]: has 0 fields that this version knows, want one: "},
		{`to: []`, "InvalidPolicyPeer", "to: is empty, want one peer or more"},
		{`to: [{namespaces: {}, nodes: {}}]`, "InvalidPolicyPeer", "to[0]: has 2 fields"},
		{`to: [{services: {}}]`, "UnknownPolicyField", "to[0].services: this version does not know the field"},
		{`to: [{namespaces: {matchFields: []}}]`, "UnknownPolicyField", "to[0].namespaces.matchFields: "},
		{`to: [{namespaces: {}}], schedule: night`, "UnknownPolicyField", "schedule: "},
		{`to: [{networks: [10.0.0.0]}]`, "InvalidPolicyPeer", `to[0].networks[0]: "10.0.0.0", want a range`},
		{`to: [{networks: ['::ffff:10.0.0.0/120']}]`, "InvalidPolicyPeer", "to[0].networks[0]: "},
		{`to: [{namespaces: {matchExpressions: [{key: a, operator: Like}]}}]`, "InvalidPolicySelector", "to[0].namespaces: "},
		{`to: [{nodes: {matchExpressions: [{key: a, operator: In}]}}]`, "InvalidPolicySelector", "to[0].nodes: "},
		{`to: [{namespaces: {}}], protocols: [{}]`, "InvalidPolicyPort", "protocols[0]: want one of tcp, udp, sctp and "},
		{`to: [{namespaces: {}}], protocols: [{tcp: {}}]`, "InvalidPolicyPort", "protocols[0]: want destinationPort with "},
		{`to: [{namespaces: {}}], protocols: [{icmp: {}}]`, "UnknownPolicyField", "protocols[0].icmp: "},
		{`to: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {number: 70000}}}]`, "InvalidPolicyPort",
			"protocols[0]: destinationPort 70000, want a number from 1 to 65535"},
		{`to: [{namespaces: {}}], protocols: [{udp: {destinationPort: {range: {start: 9, end: 5}}}}]`, "InvalidPolicyPort",
			"protocols[0]: destinationPort from 9 to 5, want numbers from 1 to 65535 in their order"},
		{`to: [{namespaces: {}}], protocols: [{destinationNamedPort: '-'}]`, "InvalidPolicyPort", "destinationNamedPort"},
		{`to: [{nodes: {}}], protocols: [{destinationNamedPort: http}]`, "InvalidPolicyPort", "want peers that are pods"},
		{`to: ` + list("{namespaces: {}}", 25), "PolicyTooLarge", "to: has 26 items, want at most 25"},
		{`to: [{networks: ` + list("10.0.0.0/8", 25) + `}]`, "PolicyTooLarge", "networks: has 26 items, want at most 25"},
	} {
		for action, want := range map[string]string{"Accept": "Accept: ", "Deny": "Deny: anybody; any port",
			"Pass": "Deny: anybody; any port"} {
			p, problems := clusterPolicy(t, "{subject: {namespaces: {}}, egress: [{action: "+action+", "+c.rule+
				"}, {action: Accept, to: [{namespaces: {}}]}]}")
			if got := inWords(p.Egress[0]); got != want {
				t.Errorf("%s with %s: %s, want %s", action, c.rule, got, want)
			}
			if len(problems) != 1 || problems[0].Reason != c.reason || !strings.Contains(problems[0].Message, c.text) ||
				!strings.HasPrefix(problems[0].Message, "spec.egress[0].") {
				t.Errorf("%s: problems %v, want %s: %s", c.rule, problems, c.reason, c.text)
			}
			if got := inWords(p.Egress[1]); got != "Accept: all pods of all namespaces; any port" {
				t.Errorf("%s: the rule behind it is %s", c.rule, got)
			}
		}
	}
}

// Rules that accept may have names, in any case and with a dot at the end. Wildcards and other actions fail closed.
func TestClusterPolicyDomainNames(t *testing.T) {
	long := strings.Repeat("a", 63)
	many := strings.Repeat("{action: Accept, to: [{domainNames: ["+strings.Repeat("a.example,", 24)+"b.example]}]},", 11)
	const invalid = "InvalidPolicyPeer"
	for _, c := range []struct{ rules, want, reason, text string }{
		{"{action: Accept, to: [{domainNames: [WWW.Example.org., a_b.example]}]}",
			"Accept: www.example.org; a_b.example; any port", "", ""},
		{"{action: Accept, to: [{domainNames: ['" + long + ".example']}]}", "Accept: " + long + ".example; any port", "", ""},
		{"{action: Accept, to: [{domainNames: [a.example, '*.b.example']}]}", "Accept: ", "WildcardNotServed",
			`spec.egress[0].to[0].domainNames[1]: "*.b.example": wildcards are not served, want each name by itself: `},
		{"{action: Accept, to: [{domainNames: [a.example], namespaces: {}}]}", "Accept: ", invalid, "has 2 fields"},
		{"{action: Accept, to: [{domainNames: ['a.*.example']}]}", "Accept: ", invalid, `"a.*.example": want a name`},
		{"{action: Accept, to: [{domainNames: [localhost]}]}", "Accept: ", invalid, `"localhost": want a name such as`},
		{"{action: Accept, to: [{domainNames: [192.0.2.1]}]}", "Accept: ", invalid, `"192.0.2.1": is no name, want addr`},
		{"{action: Accept, to: [{domainNames: [-a.example]}]}", "Accept: ", invalid, `"-a.example": want a name`},
		{"{action: Accept, to: [{domainNames: [a..example]}]}", "Accept: ", invalid, `"a..example": want a name`},
		{"{action: Accept, to: [{domainNames: ['" + long + "a.example']}]}", "Accept: ", invalid, "want a name such as"},
		{"{action: Accept, to: [{domainNames: ['" + strings.Repeat(long+".", 4) + "example']}]}", "Accept: ", invalid,
			"want a name such as"},
		{"{action: Accept, to: [{domainNames: [a.example\"]}]}", "Accept: ", invalid, "want a name such as"},
		{"{action: Accept, to: [{domainNames: [a.example]}], protocols: [{destinationNamedPort: http}]}", "Accept: ",
			"InvalidPolicyPort", "want peers that are pods"},
		{"{action: Deny, to: [{domainNames: [a.example]}]}", "Deny: anybody; any port", invalid,
			"to[0].domainNames: with action Deny, want Accept: the rule denies all egress"},
		{"{action: Pass, to: [{domainNames: [a.example]}]}", "Deny: anybody; any port", invalid,
			"to[0].domainNames: with action Pass, want Accept: the rule denies all egress"},
		{many, "Accept: " + strings.Repeat("a.example; ", 24) + "b.example; any port", "PolicyTooLarge",
			"spec.egress[10].to[0].domainNames: with it the policy has more than 256 names: divide the policy"},
	} {
		p, problems := clusterPolicy(t, "{subject: {namespaces: {}}, egress: ["+c.rules+"]}")
		if got := inWords(p.Egress[0]); got != c.want {
			t.Errorf("%.200s: %s, want %s", c.rules, got, c.want)
		}
		if c.reason == "" && len(problems) == 0 {
			continue
		}
		if len(problems) != 1 || problems[0].Reason != c.reason || !strings.Contains(problems[0].Message, c.text) {
			t.Errorf("%.200s: problems %v, want %s: %s", c.rules, problems, c.reason, c.text)
		}
	}
}

// What is wrong with the policy as a whole concerns every rule, and a subject that can't be told selects nobody.
func TestClusterPolicyNotValid(t *testing.T) {
	const rules = "ingress: [{action: Accept, from: [{namespaces: {}}]}, {action: Pass, from: [{namespaces: {}}]}]"
	const closed = "[Accept:  Deny: anybody; any port]"
	many := strings.Repeat("{action: Accept, from: [{namespaces: {}}]},", 25)
	for _, c := range []struct{ spec, reason, text, rules string }{
		{"{tier: Middle, subject: {namespaces: {}}, " + rules + "}", "InvalidPolicyTier", `spec.tier: "Middle", `, closed},
		{"{priority: 1001, subject: {namespaces: {}}, " + rules + "}", "InvalidPolicyPriority", "spec.priority: 100", closed},
		{"{schedule: x, subject: {namespaces: {}}, " + rules + "}", "UnknownPolicyField", "spec.schedule: ", closed},
		{"{subject: {}, " + rules + "}", "InvalidPolicySubject", "spec.subject: want one of", "[]"},
		{"{subject: {services: {}}, " + rules + "}", "UnknownPolicyField", "spec.subject.services: ", "[]"},
		{"{subject: {namespaces: {matchLabels: {a: '!'}}}, " + rules + "}", "InvalidPolicySelector",
			"spec.subject.namespaces: ", "[]"},
		{"{subject: 5, " + rules + "}", "PolicyUnreadable", "cannot unmarshal", "[]"},
		{"{subject: {namespaces: {}}, ingress: [" + many + "{action: Deny, from: [{namespaces: {}}]}, {action: Pass}]}",
			"PolicyTooLarge", "spec.ingress: has more than 25 rules", ""},
		{"{subject: {namespaces: {}}, ingress: [{action: Log, from: [{namespaces: {}}]}]}", "InvalidPolicyAction",
			`spec.ingress[0].action: "Log", want Accept, Deny or Pass`, "[Deny: anybody; any port]"},
	} {
		p, problems := clusterPolicy(t, c.spec)
		if len(problems) != 1 || problems[0].Reason != c.reason || !strings.Contains(problems[0].Message, c.text) {
			t.Errorf("%s: problems %v, want %s: %s", c.spec, problems, c.reason, c.text)
		}
		var got []string
		for _, r := range p.Ingress {
			got = append(got, inWords(r))
		}
		if c.rules != "" && fmt.Sprint(got) != c.rules {
			t.Errorf("%s: rules %v, want %s", c.spec, got, c.rules)
		}
		if c.rules == "" && (len(got) != 25 || got[24] != "Deny: anybody; any port" || got[23] == got[24]) {
			t.Errorf("%s: %d rules, the last %s", c.spec, len(got), got[len(got)-1])
		}
	}
}

// The decoder names 100 unknown fields at most. With as many, nothing is known of others: all rules fail closed.
func TestClusterPolicyWithManyUnknownFields(t *testing.T) {
	peers := strings.Repeat("{namespaces: {}, night: 1},", 120)
	p, problems := clusterPolicy(t, "{subject: {namespaces: {}}, egress: [{action: Deny, to: ["+peers+"]}], "+
		"ingress: [{action: Accept, from: [{namespaces: {}}], night: 1}, {action: Deny, from: [{namespaces: {}}]}]}")
	for i, want := range []string{"Accept: ", "Deny: anybody; any port"} {
		if got := inWords(p.Ingress[i]); got != want {
			t.Errorf("rule %d of ingress: %s, want %s", i, got, want)
		}
	}
	said := func(p cluster.Problem) bool { return strings.Contains(p.Message, "spec.* (100 fields or more)") }
	if !slices.ContainsFunc(problems, said) {
		t.Errorf("problems %v", problems)
	}
}
