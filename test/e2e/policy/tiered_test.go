package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// tiered is what a ClusterNetworkPolicy says, in both directions or in one. has tells, in the words of the API, whether
// the rule's peers have the other end of a connection, and serves whether its ports have the server's.
type tiered struct {
	name    string
	tier    string
	action  string // of the first rule, which the others are about
	then    string // another rule, as YAML; "" for none
	from    string // peers of ingress, as YAML; "" if no rule of ingress can have such peers
	to      string // peers of egress
	ports   string // "protocols" of the rule, as YAML; "" for every port
	isolate bool   // a NetworkPolicy denies everything, for the same pods
	has     func(end) bool
	serves  func(port int) bool
}

// tieredRules are the columns of the page about cluster policies.
func tieredRules(ofHome []string) []tiered {
	const pods = "{pods: {namespaceSelector: {matchLabels: {team: shop}}, podSelector: {matchLabels: {role: web}}}}"
	const friends, everybody = "{namespaces: {matchLabels: {team: friends}}}", "{namespaces: {}}"
	anyPort, low := always, func(p int) bool { return p == lowPort }
	isFriend, isPod := func(e end) bool { return e.pod && e.namespace == friendly }, func(e end) bool { return e.pod }
	admin, deny := "Admin", "Deny"
	return []tiered{
		{name: "Deny pods", tier: admin, action: deny, from: pods, to: pods, serves: anyPort,
			has: func(e end) bool { return e.pod && e.namespace == shop && e.role == "web" }},
		{name: "Deny namespaces", tier: admin, action: deny, from: friends, to: friends, serves: anyPort, has: isFriend},
		{name: "Deny a port by number", tier: admin, action: deny, from: everybody, to: everybody, has: isPod, serves: low,
			ports: eachProtocol(fmt.Sprintf("number: %d", lowPort))},
		{name: "Deny a port by name", tier: admin, action: deny, from: everybody, to: everybody, has: isPod, serves: low,
			ports: namedPorts()},
		{name: "Deny a range of ports", tier: admin, action: deny, from: everybody, to: everybody, has: isPod,
			serves: func(p int) bool { return p == highPort },
			ports:  eachProtocol(fmt.Sprintf("range: {start: %d, end: %d}", highPort, highPort+9))},
		{name: "Accept namespaces, a NetworkPolicy denies all", tier: admin, action: "Accept", from: friends, to: friends,
			isolate: true, has: isFriend, serves: anyPort},
		{name: "Pass namespaces, then Deny all", tier: admin, action: "Pass", from: friends, to: friends, then: everybody,
			has: isFriend, serves: anyPort},
		{name: "Baseline: Deny namespaces", tier: "Baseline", action: deny, from: friends, to: friends, has: isFriend,
			serves: anyPort},
		{name: "Deny nodes", tier: admin, action: deny, to: "{nodes: {}}", serves: anyPort,
			has: func(e end) bool { return e.node != "" && !e.pod && !e.forwarded }},
		{name: "Deny networks: the subnets of the pod's node", tier: admin, action: deny, serves: anyPort,
			to:  "{networks: [" + quoted(ofHome) + "]}",
			has: func(e end) bool { return e.node == home && !e.own && !e.forwarded }},
	}
}

// crossedTiers are denials with peers of each kind and ports of each kind. Of a rule with a named port, the peers are
// pods: the API allows no others.
func crossedTiers(ofHome []string) (out []tiered) {
	denials := slices.DeleteFunc(tieredRules(ofHome), func(r tiered) bool {
		return r.tier != "Admin" || r.action != "Deny" || r.then != ""
	})
	for _, peers := range denials {
		for _, ports := range denials {
			named := ports.ports == namedPorts()
			if peers.ports != "" || ports.ports == "" || named && peers.from == "" {
				continue
			}
			r := peers
			name, _, _ := strings.Cut(peers.name, ":")
			r.name, r.ports, r.serves = name+"; "+strings.TrimPrefix(ports.name, "Deny "), ports.ports, ports.serves
			out = append(out, r)
		}
	}
	return out
}

func quoted(list []string) string { return `"` + strings.Join(list, `", "`) + `"` }

func eachProtocol(port string) string {
	var out []string
	for _, p := range protocols() {
		out = append(out, fmt.Sprintf("{%s: {destinationPort: {%s}}}", strings.ToLower(string(p)), port))
	}
	return strings.Join(out, ", ")
}

func namedPorts() string {
	var out []string
	for _, p := range protocols() {
		out = append(out, fmt.Sprintf("{destinationNamedPort: %s}", portName(p)))
	}
	return strings.Join(out, ", ")
}

// allows tells what becomes of a connection, in the words of the API.
func (r tiered) allows(e end, port int) bool {
	matched := r.has(e) && r.serves(port)
	switch {
	case r.isolate: // "traffic to and from the node where a Pod is running is always allowed"
		return matched || e.host() && e.node == home
	case r.then != "":
		return matched || !e.pod
	}
	return !matched
}

// ingress and egress are the columns of a rule. A pod that reaches itself through a service is subject to rules of
// ingress as if the connection came from its own address, and to none of egress.
func (r tiered) ingress() column {
	own := end{pod: true, namespace: shop, node: home}
	return column{name: r.name, pod: "cnp-in-" + label(r.name), allowed: r.allows,
		itself: func(port int) bool { return r.isolate || r.allows(own, port) }}
}

func (r tiered) egress() column {
	return column{name: r.name, pod: "cnp-out-" + label(r.name), allowed: r.allows, itself: always,
		nodePort: !r.isolate && (r.ports != "" || !r.has(end{node: home, own: true}))} // a node port is none of the ports
}

// policy is a ClusterNetworkPolicy of the rule, for the pod of a column.
func (r tiered) policy(pod, section, side, peers string, priority int) string {
	rule := fmt.Sprintf("{action: %s, %s: [%s]", r.action, side, peers)
	if r.ports != "" {
		rule += ", protocols: [" + r.ports + "]"
	}
	rule += "}"
	if r.then != "" {
		rule += fmt.Sprintf(", {action: Deny, %s: [%s]}", side, r.then)
	}
	subject := fmt.Sprintf("{pods: {namespaceSelector: {matchLabels: {team: shop}}, podSelector: {matchLabels: "+
		"{case: %s}}}}", pod)
	return clusterPolicy(pod, r.tier, priority, subject, section+": ["+rule+"]")
}

// tiers asks the questions that only leaves about cluster policies with packets.
func (b *bed) tiers(t *testing.T, of func(ofHome []string) []tiered) {
	machines.InstallClusterPolicies(t, b.Cluster)
	_, ofHome := b.ranges(t)
	served := b.world(t)
	rules := of(ofHome)
	in, out := tieredColumns(rules)
	var manifests strings.Builder
	for i, r := range rules {
		if r.from != "" {
			manifests.WriteString(r.policy(r.ingress().pod, "ingress", "from", r.from, 100+2*i))
		}
		manifests.WriteString(r.policy(r.egress().pod, "egress", "to", r.to, 101+2*i))
		if r.isolate {
			b.isolate(t, r.ingress().pod, networkingv1.PolicyTypeIngress)
			b.isolate(t, r.egress().pod, networkingv1.PolicyTypeEgress)
		}
	}
	for _, c := range slices.Concat(in, out) {
		b.makePod(t, serverPod(shop, c.pod, home, map[string]string{"case": c.pod}))
		served[c.pod] = b.makeService(t, shop, c.pod, map[string]string{"case": c.pod})
	}
	for _, c := range slices.Concat(in, out) {
		b.awaitPod(t, shop, c.pod)
	}
	defer machines.Kubectl(t, b.Cluster, manifests.String(), "delete", "-f", "-") // other tests begin without any
	machines.Kubectl(t, b.Cluster, manifests.String(), "apply", "-f", "-")
	b.awaitRows(t, out[len(out)-1].pod, true)
	machines.FlowsInSync(t, b.Cluster)
	b.askAll(t, b.cells(machines.Protocols(t), served, in, out))
}

// isolate makes a NetworkPolicy without rules for the pod of a column.
func (b *bed) isolate(t *testing.T, pod string, direction networkingv1.PolicyType) {
	t.Helper()
	b.makePolicy(t, shop, pod, networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"case": pod}},
		PolicyTypes: []networkingv1.PolicyType{direction}})
}

// tieredColumns lists the columns: those of egress have peers that ingress does not.
func tieredColumns(rules []tiered) (in, out []column) {
	in, out = columnsOf(rules)
	return slices.DeleteFunc(in, func(c column) bool {
		return slices.ContainsFunc(rules, func(r tiered) bool { return r.from == "" && r.ingress().pod == c.pod })
	}), out
}
