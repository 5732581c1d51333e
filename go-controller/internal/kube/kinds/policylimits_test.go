package kinds_test

import (
	"fmt"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// Two rules that name as much of everything.
const (
	twoRules = `{podSelector: {}, ingress: [
  {from: [{podSelector: {}}, {ipBlock: {cidr: 192.0.2.0/24}}], ports: [{port: 80}]},
  {from: [{podSelector: {}}, {ipBlock: {cidr: 192.0.2.0/24}}], ports: [{port: 81}]}]}`
	twoDenials = `{tier: Admin, priority: 7, subject: {namespaces: {}}, egress: [
  {action: Deny, to: [{namespaces: {}}, {networks: [192.0.2.0/24]}],
    protocols: [{tcp: {destinationPort: {number: 80}}}]},
  {action: Deny, to: [{namespaces: {}}, {networks: [192.0.2.0/24]}],
    protocols: [{tcp: {destinationPort: {number: 81}}}]}]}`
)

// policyUnder decodes an object with this spec. rules is what each of its rules says.
func policyUnder(t *testing.T, row kinds.Kind, spec string) (rules []string, problems []cluster.Problem) {
	t.Helper()
	text := "apiVersion: " + row.APIVersion() + "\nkind: " + string(row.Kind) + "\nmetadata: {name: p, " +
		"namespace: shop, annotations: {k8s.v1.cni.cncf.io/policy-for: blue}}\nspec: " + spec
	u, typed := &unstructured.Unstructured{}, &networkingv1.NetworkPolicy{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(text), typed); err != nil && row.Kind == cluster.KindNetworkPolicy {
		t.Fatal(err)
	}
	o, problems := row.Decode(u)
	if row.Kind == cluster.KindNetworkPolicy {
		o, problems = row.Decode(typed)
	}
	var allowing []cluster.PolicyRule
	switch p := o.(type) {
	case *cluster.NetworkPolicy:
		allowing = p.Ingress.Rules
	case *cluster.MultiNetworkPolicy:
		allowing = p.Ingress.Rules
	case *cluster.TieredPolicy:
		for _, r := range p.Egress {
			rules = append(rules, inWords(r))
		}
	}
	for _, r := range allowing {
		rules = append(rules, inWords(cluster.TieredRule{PolicyRule: r, Action: "Allow"}))
	}
	return rules, problems
}

// Each limit leaves out what exceeds it. That allows nothing, and denies all where the rule does not accept.
func TestPolicyLimits(t *testing.T) {
	const first, second = "Allow: all pods of namespace shop; [192.0.2.0/24]; TCP  80-80",
		"Allow: all pods of namespace shop; [192.0.2.0/24]; TCP  81-81"
	const denied = "Deny: all pods of all namespaces; [192.0.2.0/24]; TCP  8"
	const closed = "Deny: anybody; any port"
	for _, c := range []struct {
		limits         config.Policies
		second, denies string // what is left of the second rule: of a NetworkPolicy, of a ClusterNetworkPolicy
		says           string
	}{
		{config.Policies{}, second, denied + "1-81", ""},
		{config.Policies{MaxRules: 2, MaxSelectors: 2, MaxRanges: 2, MaxPorts: 2}, second, denied + "1-81", ""},
		{config.Policies{MaxRules: 1}, "", denied + "1-81", "more than 1 rules: "},
		{config.Policies{MaxSelectors: 1}, "Allow: [192.0.2.0/24]; TCP  81-81", closed, "more than 1 selectors: "},
		{config.Policies{MaxRanges: 1}, "Allow: all pods of namespace shop; TCP  81-81", closed,
			"more than 1 ranges of addresses: "},
		{config.Policies{MaxPorts: 1}, "Allow: all pods of namespace shop; [192.0.2.0/24]", closed, "more than 1 ports: "},
	} {
		for _, row := range kinds.Within(c.limits) {
			spec, want := twoRules, []string{first, c.second}
			switch {
			case !row.Limited:
				continue
			case row.Kind == cluster.KindClusterNetworkPolicy:
				spec, want = twoDenials, []string{denied + "0-80", c.denies}
			case c.second == "":
				want = want[:1]
			}
			got, problems := policyUnder(t, row, spec)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %+v:\n%s, want\n%s", row.Kind, c.limits, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			says := c.says
			if row.Kind == cluster.KindClusterNetworkPolicy && c.limits.MaxRules == 1 {
				says = "" // the API limits these rules
			}
			wantTooLarge(t, fmt.Sprintf("%s, %+v", row.Kind, c.limits), problems, says)
		}
	}
}

// wantTooLarge wants one problem that names a limit and its flag, or none.
func wantTooLarge(t *testing.T, what string, problems []cluster.Problem, says string) {
	t.Helper()
	if says == "" {
		if len(problems) != 0 {
			t.Errorf("%s: problems %v, want none", what, problems)
		}
		return
	}
	word := strings.Trim(strings.Fields(says)[3], ":")
	flag := "divide the policy, or raise --max-policy-" + word + " of the masters"
	if len(problems) != 1 || problems[0].Reason != "PolicyTooLarge" || !strings.Contains(problems[0].Message, says) ||
		!strings.Contains(problems[0].Message, flag) {
		t.Errorf("%s: problems %v, want one that says %q and %q", what, problems, says, flag)
	}
}

// 0 is no limit: more than the defaults is read. The limits of the names of ports stay.
func TestNoPolicyLimits(t *testing.T) {
	var ports, names []string
	for i := range 1100 {
		ports = append(ports, fmt.Sprintf("{port: %d}", 1+2*i))
		names = append(names, fmt.Sprintf("{port: p%d}", i))
	}
	rules := "{ports: [" + strings.Join(ports, ", ") + "]}" + strings.Repeat(", {}", 1100)
	spec := "{podSelector: {}, ingress: [" + rules + "]}"
	got, problems := policyUnder(t, kinds.NetworkPolicy(config.Policies{}), spec)
	if len(got) != 1101 || strings.Count(got[0], "TCP") != 1100 || len(problems) != 0 {
		t.Errorf("%d rules, %d ports, problems %v", len(got), strings.Count(got[0], "TCP"), problems)
	}
	spec = "{podSelector: {}, ingress: [{ports: [" + strings.Join(names, ", ") + "]}]}"
	got, problems = policyUnder(t, kinds.NetworkPolicy(config.Policies{}), spec)
	if strings.Contains(got[0], "TCP") || len(problems) != 1 ||
		!strings.HasSuffix(problems[0].Message, "more than 64 names of ports: it is left out and allows nothing, as all "+
			"that follows and is too much; divide the policy") {
		t.Errorf("rules %v, problems %v", got, problems)
	}
}
