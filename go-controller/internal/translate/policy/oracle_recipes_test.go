package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
)

// recipe is policies and what follows from them.
type recipe struct {
	policies []string // "NAMESPACE SPEC", the spec as YAML
	// connections of both families: "+ FROM -> TO PROTOCOL PORT" for those that are allowed, "-" for those that are not
	connections string
}

// recipes are what people write, and the corners of the API, each with the answer of its documentation.
func recipes() map[string]recipe {
	const web = "podSelector: {matchLabels: {app: web}}"
	return map[string]recipe{
		"no policy": {nil, "+ y/client -> x/web TCP 80, + x/web -> outside TCP 443, + outside -> x/web UDP 9"},
		"default deny of ingress": {[]string{"x {podSelector: {}, policyTypes: [Ingress]}"},
			"- y/client -> x/web TCP 80, - x/api -> x/web TCP 80, - outside -> x/web TCP 80, - host n2 -> x/web TCP 80, " +
				"- y/client -> x/web ICMP 0, + x/web -> y/web TCP 80, + x/web -> outside TCP 80, + x/web -> x/web TCP 80, " +
				"+ host n0 -> x/web TCP 80, + host n0 -> x/web UDP 53, + host n0 -> x/web ICMP 0"},
		"default deny of egress": {[]string{"x {podSelector: {}, policyTypes: [Egress]}"},
			"- x/web -> y/web TCP 80, - x/web -> x/api TCP 80, - x/web -> outside TCP 80, - x/web -> host n1 TCP 80, " +
				"+ y/client -> x/web TCP 80, + x/web -> host n0 TCP 80, + x/web -> address of n0 TCP 80, - x/web -> " +
				"address of n1 TCP 80, + x/web -> x/web TCP 80"},
		"default deny of both": {[]string{"x {podSelector: {}, policyTypes: [Ingress, Egress]}"},
			"- x/web -> y/web TCP 80, - y/web -> x/web TCP 80, + y/web -> z/other TCP 80"},
		"no types and no rules affect ingress": {[]string{"x {podSelector: {}}"},
			"- y/client -> x/web TCP 80, + x/web -> y/web TCP 80"},
		"no types and an egress rule affect both": {[]string{"x {podSelector: {}, egress: [{}]}"},
			"- y/client -> x/web TCP 80, + x/web -> y/web TCP 80, + x/web -> outside SCTP 1"},
		"no types and an empty egress section affect ingress": {[]string{"x {podSelector: {}, egress: []}"},
			"- y/client -> x/web TCP 80, + x/web -> y/web TCP 80"},
		"rules of another type count for nothing": {
			[]string{"x {podSelector: {}, policyTypes: [Ingress], ingress: [], egress: [{to: [{podSelector: {}}]}]}"},
			"- x/api -> x/web TCP 80, + x/web -> y/web TCP 80"},
		"allow all ingress": {[]string{"x {podSelector: {}, policyTypes: [Ingress]}", "x {podSelector: {}, ingress: [{}]}"},
			"+ y/client -> x/web TCP 80, + outside -> x/web ICMP 0, + host n2 -> x/web UDP 1"},
		"empty lists mean all": {[]string{"x {podSelector: {}, ingress: [{from: [], ports: []}]}"},
			"+ y/client -> x/web TCP 80, + outside -> x/web SCTP 7, + y/client -> x/web ICMP 0"},
		"only pods that the selector selects": {[]string{"x {" + web + ", ingress: []}"},
			"- y/client -> x/web TCP 80, + y/client -> x/api TCP 80, + x/api -> y/web TCP 80"},
		"from pods of the own namespace": {
			[]string{"x {" + web + ", ingress: [{from: [{podSelector: {matchLabels: {app: api}}}]}]}"},
			"+ x/api -> x/web TCP 80, + x/api -> x/web ICMP 0, - x/db -> x/web TCP 80, - y/api -> x/web TCP 80"},
		"from all pods of the own namespace": {[]string{"x {" + web + ", ingress: [{from: [{podSelector: {}}]}]}"},
			"+ x/api -> x/web TCP 80, - y/client -> x/web TCP 80, - outside -> x/web TCP 80"},
		"from namespaces": {
			[]string{"x {" + web + ", ingress: [{from: [{namespaceSelector: {matchLabels: {team: blue}}}]}]}"},
			"+ y/client -> x/web TCP 80, + y/web -> x/web UDP 1, - x/api -> x/web TCP 80, - z/other -> x/web TCP 80"},
		"from all namespaces": {[]string{"x {" + web + ", ingress: [{from: [{namespaceSelector: {}}]}]}"},
			"+ y/client -> x/web TCP 80, + x/api -> x/web TCP 80, - outside -> x/web TCP 80, - host n2 -> x/web TCP 80"},
		"by the name of a namespace": {[]string{"x {" + web + ", ingress: [{from: [{namespaceSelector: {matchLabels: " +
			"{kubernetes.io/metadata.name: z}}}]}]}"}, "+ z/other -> x/web TCP 80, - y/client -> x/web TCP 80"},
		"from pods of namespaces: both must match": {[]string{"x {" + web + ", ingress: [{from: [{namespaceSelector: " +
			"{matchLabels: {team: blue}}, podSelector: {matchLabels: {app: client}}}]}]}"},
			"+ y/client -> x/web TCP 80, - y/web -> x/web TCP 80, - x/client -> x/web TCP 80"},
		"from pods or namespaces: one must match": {[]string{"x {" + web + ", ingress: [{from: [{namespaceSelector: " +
			"{matchLabels: {team: blue}}}, {podSelector: {matchLabels: {app: api}}}]}]}"},
			"+ y/client -> x/web TCP 80, + x/api -> x/web TCP 80, - x/db -> x/web TCP 80, - z/other -> x/web TCP 80"},
		"NotIn selects what has no such label": {[]string{"x {" + web + ", ingress: [{from: [{namespaceSelector: " +
			"{matchExpressions: [{key: team, operator: NotIn, values: [red]}]}}]}]}"},
			"+ y/client -> x/web TCP 80, + z/other -> x/web TCP 80, - x/api -> x/web TCP 80"},
		"Exists and DoesNotExist": {[]string{"x {podSelector: {matchExpressions: [{key: tier, operator: Exists}]}, " +
			"ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}]}]}"},
			"+ z/other -> x/api TCP 80, - y/client -> x/api TCP 80, + y/client -> x/web TCP 80"},
		"a port": {[]string{"x {" + web + ", ingress: [{ports: [{port: 80}]}]}"},
			"+ y/client -> x/web TCP 80, - y/client -> x/web TCP 81, - y/client -> x/web UDP 80, - y/client -> x/web ICMP 0"},
		"a port of a protocol": {[]string{"x {" + web + ", ingress: [{ports: [{port: 53, protocol: UDP}]}]}"},
			"+ y/client -> x/web UDP 53, - y/client -> x/web TCP 53, - y/client -> x/web SCTP 53"},
		"all ports of a protocol": {[]string{"x {" + web + ", ingress: [{ports: [{protocol: SCTP}]}]}"},
			"+ y/client -> x/web SCTP 1, + y/client -> x/web SCTP 65535, - y/client -> x/web TCP 1"},
		"a port without anything is all of TCP": {[]string{"x {" + web + ", ingress: [{ports: [{}]}]}"},
			"+ y/client -> x/web TCP 1, - y/client -> x/web UDP 1, - y/client -> x/web ICMP 0"},
		"a range of ports": {[]string{"x {" + web + ", ingress: [{ports: [{port: 8000, endPort: 8999}, {port: 80}]}]}"},
			"+ y/client -> x/web TCP 8000, + y/client -> x/web TCP 8999, + y/client -> x/web TCP 80, - y/client -> x/web " +
				"TCP 7999, - y/client -> x/web TCP 9000, - y/client -> x/web UDP 8000"},
		"peers and ports: both must match": {
			[]string{"x {" + web + ", ingress: [{from: [{podSelector: {matchLabels: {app: api}}}], ports: [{port: 80}]}]}"},
			"+ x/api -> x/web TCP 80, - x/api -> x/web TCP 81, - x/db -> x/web TCP 80"},
		"rules are additive, and do not mix": {[]string{"x {" + web + ", ingress: [{from: [{podSelector: {matchLabels: " +
			"{app: api}}}], ports: [{port: 80}]}, {from: [{podSelector: {matchLabels: {app: db}}}], ports: [{port: 81}]}]}"},
			"+ x/api -> x/web TCP 80, + x/db -> x/web TCP 81, - x/api -> x/web TCP 81, - x/db -> x/web TCP 80"},
		"policies are additive": {[]string{"x {podSelector: {}, policyTypes: [Ingress]}", "x {" + web + ", ingress: " +
			"[{ports: [{port: 80}]}]}", "x {podSelector: {}, ingress: [{ports: [{port: 81}]}]}"},
			"+ y/client -> x/web TCP 80, + y/client -> x/web TCP 81, - y/client -> x/api TCP 80, + y/client -> x/api TCP 81"},
		"both ends must allow": {[]string{"x {" + web + ", ingress: [{from: [{namespaceSelector: {}}]}]}",
			"y {podSelector: {matchLabels: {app: client}}, policyTypes: [Egress]}"},
			"- y/client -> x/web TCP 80, + y/web -> x/web TCP 80"},
		"a named port of the own pods": {[]string{"x {podSelector: {}, ingress: [{ports: [{port: http}]}]}"},
			"+ y/client -> x/web TCP 80, - y/client -> x/web TCP 8080, + y/client -> x/api TCP 8080, - y/client -> x/api " +
				"TCP 80, - y/client -> x/db TCP 80"},
		"a named port of other pods": {
			[]string{"x {podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: http}]}]}"},
			"+ x/db -> y/web TCP 8080, - x/db -> y/web TCP 80, + x/db -> x/web TCP 80, - x/db -> outside TCP 80, - x/db -> " +
				"z/other TCP 80"},
		"a named port of a protocol": {
			[]string{"x {podSelector: {}, ingress: [{ports: [{port: dns, protocol: UDP}, {port: http, protocol: UDP}]}]}"},
			"+ y/client -> x/web UDP 53, - y/client -> x/web TCP 53, - y/client -> x/web UDP 80"},
		"a named port of a sidecar, and of an init container that ends": {
			[]string{"y {podSelector: {}, ingress: [{ports: [{port: proxy}, {port: setup}]}]}"},
			"+ x/api -> y/api TCP 15001, - x/api -> y/api TCP 15002, - x/api -> y/web TCP 15001"},
		"a named port that nobody has": {[]string{"x {podSelector: {}, ingress: [{ports: [{port: nobodys}]}]}"},
			"- y/client -> x/web TCP 80, - y/client -> x/web TCP 8080"},
		"a block": {[]string{"x {" + web + ", ingress: [{from: [{ipBlock: {cidr: 192.0.2.0/24}}, {ipBlock: {cidr: " +
			"'2001:db8:2::/48'}}]}]}"}, "+ outside 192.0.2.1 -> x/web TCP 80, + outside 2001:db8:2::1 -> x/web TCP 80, - " +
			"outside 198.51.100.7 -> x/web TCP 80, - outside 2001:db8:9::1 -> x/web TCP 80, - y/client -> x/web TCP 80"},
		"a block with exceptions": {[]string{"x {" + web + ", policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: " +
			"0.0.0.0/0, except: [192.0.2.128/25, 10.128.0.0/14]}}]}]}"}, "+ x/web -> outside 192.0.2.1 TCP 80, - x/web -> " +
			"outside 192.0.2.130 TCP 80, - x/web -> outside 10.128.0.200 TCP 80, - x/web -> outside 2001:db8:9::1 TCP 80"},
		"what one block excepts another may allow": {[]string{"x {" + web + ", ingress: [{from: [{ipBlock: {cidr: " +
			"192.0.2.0/24, except: [192.0.2.128/25]}}, {ipBlock: {cidr: 192.0.2.130/32}}]}]}"},
			"+ outside 192.0.2.130 -> x/web TCP 80, + outside 192.0.2.1 -> x/web TCP 80"},
		"everything but the cluster": {[]string{"x {podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: " +
			"{cidr: 0.0.0.0/0, except: [10.128.0.0/14]}}, {ipBlock: {cidr: '::/0', except: ['fd01::/48']}}]}]}"},
			"+ x/web -> outside 192.0.2.1 TCP 443, + x/web -> outside 2001:db8:9::1 TCP 443, - x/web -> y/web TCP 80"},
		"DNS and nothing else": {[]string{"x {podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 53, " +
			"protocol: UDP}, {port: 53, protocol: TCP}]}]}"}, "+ x/web -> y/web UDP 53, + x/web -> y/web TCP 53, - x/web -> " +
			"y/web TCP 80, - x/web -> y/web SCTP 53, + x/web -> outside UDP 53"},
		"pods of the host network are in no selector": {
			[]string{"x {" + web + ", ingress: [{from: [{namespaceSelector: {}, podSelector: {}}]}]}"},
			"- host n1 -> x/web TCP 80, + z/other -> x/web TCP 80"},
		"a host by its address": {[]string{"x {" + web + ", ingress: [{from: [{ipBlock: {cidr: 10.128.4.2/32}}]}]}"},
			"+ host n2 -> x/web TCP 80 v4, - host n1 -> x/web TCP 80, - host n2 -> x/web TCP 80 v6"},
		"finished pods are in no selector": {[]string{"x {" + web + ", ingress: [{from: [{podSelector: {matchLabels: {app: " +
			"done}}}]}]}"}, "- the address of x/done -> x/web TCP 80, - x/api -> x/web TCP 80"},
		"a policy of another namespace": {[]string{"y {podSelector: {}, policyTypes: [Ingress, Egress]}"},
			"+ x/api -> x/web TCP 80, - x/api -> y/web TCP 80, - y/web -> x/web TCP 80"},
		"a selector that selects nobody": {[]string{"x {podSelector: {matchLabels: {app: nobody}}, policyTypes: [Ingress]}"},
			"+ y/client -> x/web TCP 80"},
		"peers that select nobody": {
			[]string{"x {" + web + ", ingress: [{from: [{podSelector: {matchLabels: {app: nobody}}}]}]}"},
			"- y/client -> x/web TCP 80, - x/api -> x/web TCP 80, + x/web -> x/web TCP 80"},
	}
}

// recipeCluster is the cluster of the recipes.
func recipeCluster(t *testing.T, policies []string) *kube {
	t.Helper()
	k := &kube{Cluster: policytest.New([]bool{true, false})}
	for name, labels := range map[string]map[string]string{"x": {"team": "red"}, "y": {"team": "blue"}, "z": {}} {
		labels["kubernetes.io/metadata.name"] = name
		k.Namespaces = append(k.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u",
			Labels: labels}})
	}
	pod := func(namespace, name string, node int, ports ...corev1.ContainerPort) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u",
			Labels: map[string]string{"app": name}}}
		p.Spec.NodeName = k.Nodes[node].Name
		p.Spec.Containers = []corev1.Container{{Name: "c", Ports: ports}}
		policytest.Assign(p, node, uint64(3+len(k.Pods)), k.Families)
		k.Pods = append(k.Pods, p)
		return p
	}
	pod("x", "web", 0, corev1.ContainerPort{Name: "http", ContainerPort: 80},
		corev1.ContainerPort{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP})
	pod("x", "api", 1, corev1.ContainerPort{Name: "http", ContainerPort: 8080}).Labels["tier"] = "back"
	pod("x", "db", 0)
	pod("x", "client", 2)
	pod("x", "done", 2).Status.Phase = corev1.PodSucceeded
	pod("y", "web", 1, corev1.ContainerPort{Name: "http", ContainerPort: 8080})
	pod("y", "api", 0).Spec.InitContainers = []corev1.Container{
		{Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
			Ports: []corev1.ContainerPort{{Name: "proxy", ContainerPort: 15001}}},
		{Name: "init", Ports: []corev1.ContainerPort{{Name: "setup", ContainerPort: 15002}}}}
	pod("y", "client", 0)
	pod("z", "other", 2)
	pod("z", "host", 1).Spec.HostNetwork = true
	k.Pods[len(k.Pods)-1].Annotations = nil
	for i, text := range policies {
		namespace, spec, _ := strings.Cut(text, " ")
		p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("p%d", i)}}
		if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		k.Policies = append(k.Policies, p)
	}
	return k
}

// tried lists the connections that a text such as "x/web -> outside TCP 80 v4" describes: those of both families, if
// there is none behind it, and with every outsider, if it names none.
func (k *kube) tried(t *testing.T, text string) []connection {
	t.Helper()
	from, rest, _ := strings.Cut(text, " -> ")
	words := strings.Fields(rest)
	families := k.Families
	if i := slices.Index([]string{"v4", "v6"}, words[len(words)-1]); i >= 0 {
		families, words = k.Families[i:i+1], words[:len(words)-1]
	}
	to := strings.Join(words[:len(words)-2], " ")
	is := func(e end, name string) bool {
		return e.Name == name || name == "outside" && strings.HasPrefix(e.Name, "outside ")
	}
	var out []connection
	for _, v4 := range families {
		for _, f := range k.Ends(v4) {
			for _, e := range k.Ends(v4) {
				if is(f, from) && is(e, to) {
					c := connection{From: f, To: e, Protocol: corev1.Protocol(words[len(words)-2])}
					if _, err := fmt.Sscan(words[len(words)-1], &c.Port); err != nil {
						t.Fatalf("%s: %v", text, err)
					}
					out = append(out, c)
				}
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s: no such connection", text)
	}
	return out
}

// The model, and the rows that are made, agree with the API's documentation.
func TestRecipes(t *testing.T) {
	for name, r := range recipes() {
		t.Run(name, func(t *testing.T) {
			k := recipeCluster(t, r.policies)
			rows, err := k.rows()
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(r.connections, ", ") {
				for _, c := range k.tried(t, line[2:]) {
					if k.allowed(c) != (line[0] == '+') {
						t.Errorf("%s: the model says %v", line, k.allowed(c))
					}
					if d := k.difference(rows, c); d != "" {
						t.Error(d)
					}
				}
			}
		})
	}
}
