package policy

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The ports of every server. The policies' ports are these by number, name or range.
const (
	lowPort  = 8080 // named low-tcp, low-udp and low-sctp
	highPort = 8081
)

// end is one end of a connection, as the API's words tell it apart from others.
type end struct {
	pod             bool // in the pod network; otherwise a host, or somebody whom a node stands for
	namespace, role string
	node            string // whose subnet has the address of a pod, or of the management port that stands for somebody
	forwarded       bool   // a node stands for a client of its node port: the client is not the node
	outside         bool   // an address that is not of the cluster
	own             bool   // a node's own address, not its management port's
}

// rule is what a policy allows, in one direction. accepts tells, in the words of the API, whether its peers have the
// other end of a connection, and serves whether its ports have the server's.
type rule struct {
	name    string
	peers   func(all, without []string) []networkingv1.NetworkPolicyPeer // of all pods' ranges, and of the home node's
	ports   []networkingv1.NetworkPolicyPort
	block   bool // the peers are ranges of addresses
	named   bool // ports have names
	none    bool // the policy has no rule
	absent  bool // there is no policy
	accepts func(end) bool
	serves  func(port int) bool
}

func rules() []rule {
	any, anyPort := func(end) bool { return true }, always
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"role": "web"}}
	friends := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "friends"}}
	peer := func(p networkingv1.NetworkPolicyPeer) func(_, _ []string) []networkingv1.NetworkPolicyPeer {
		return func(_, _ []string) []networkingv1.NetworkPolicyPeer { return []networkingv1.NetworkPolicyPeer{p} }
	}
	return []rule{
		{name: "no policy", absent: true, accepts: any, serves: anyPort},
		{name: "deny all", none: true, accepts: func(end) bool { return false }, serves: anyPort},
		{name: "pods", peers: peer(networkingv1.NetworkPolicyPeer{PodSelector: web}), serves: anyPort,
			// "selects the pods matching podSelector in the policy's own namespace"
			accepts: func(e end) bool { return e.pod && e.namespace == shop && e.role == "web" }},
		{name: "namespaces", peers: peer(networkingv1.NetworkPolicyPeer{NamespaceSelector: friends}), serves: anyPort,
			// "selects all pods in the namespaces selected by namespaceSelector"
			accepts: func(e end) bool { return e.pod && e.namespace == friendly }},
		{name: "pods in namespaces", serves: anyPort,
			peers: peer(networkingv1.NetworkPolicyPeer{PodSelector: web, NamespaceSelector: friends}),
			// "selects the pods matching podSelector in the namespaces selected by namespaceSelector"
			accepts: func(e end) bool { return e.pod && e.namespace == friendly && e.role == "web" }},
		{name: "ipBlock, except", peers: blocks, block: true, serves: anyPort,
			// "a particular CIDR ... the except entry describes CIDRs that should not be included within this rule"
			accepts: func(e end) bool { return !e.outside && e.node != home }},
		{name: "port by number", ports: byNumber(), accepts: any, serves: func(p int) bool { return p == lowPort }},
		{name: "port by name", ports: byName(), named: true, accepts: any, serves: func(p int) bool { return p == lowPort }},
		{name: "endPort", ports: byRange(), accepts: any, serves: func(p int) bool { return p == highPort }},
	}
}

// crossed are rules with peers of each kind and ports of each kind. Such a rule allows what has the peer and the port.
func crossed() (out []rule) {
	for _, peers := range rules() {
		for _, ports := range rules() {
			if peers.peers != nil && ports.ports != nil {
				out = append(out, rule{name: peers.name + "; " + ports.name, peers: peers.peers, ports: ports.ports,
					block: peers.block, named: ports.named, accepts: peers.accepts, serves: ports.serves})
			}
		}
	}
	return out
}

// ingress and egress are the columns of a rule.
func (r rule) ingress() column {
	return column{name: r.name, pod: "in-" + label(r.name), itself: always, allowed: func(e end, port int) bool {
		return r.absent || e.host() && e.node == home || r.accepts(e) && r.serves(port)
	}}
}

func (r rule) egress() column {
	// Hosts and addresses have no ports with names, and a node port is none of the rules' ports.
	allowed := func(e end, port int) bool {
		return r.absent || e.host() && e.node == home || r.accepts(e) && r.serves(port) && (e.pod && !r.block || !r.named)
	}
	return column{name: r.name, pod: "out-" + label(r.name), itself: always, nodePort: r.absent, allowed: allowed}
}

// always is for pods that may reach themselves, whatever the port.
func always(int) bool { return true }

// columnsOf lists the columns of all rules in both directions.
func columnsOf[R interface {
	ingress() column
	egress() column
}](rules []R) (in, out []column) {
	for _, r := range rules {
		in, out = append(in, r.ingress()), append(out, r.egress())
	}
	return in, out
}

// host tells whether this is a node itself, which pods see with its management port's address.
func (e end) host() bool { return !e.pod && !e.forwarded && !e.outside }

func blocks(all, without []string) (out []networkingv1.NetworkPolicyPeer) {
	for i := range all {
		block := &networkingv1.IPBlock{CIDR: all[i], Except: []string{without[i]}}
		out = append(out, networkingv1.NetworkPolicyPeer{IPBlock: block})
	}
	return out
}

func protocols() []corev1.Protocol {
	return []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
}

func byNumber() (out []networkingv1.NetworkPolicyPort) {
	number := intstr.FromInt32(lowPort)
	for _, p := range protocols() {
		out = append(out, networkingv1.NetworkPolicyPort{Protocol: &p, Port: &number})
	}
	return out
}

func byName() (out []networkingv1.NetworkPolicyPort) {
	for _, p := range protocols() {
		name := intstr.FromString(portName(p))
		out = append(out, networkingv1.NetworkPolicyPort{Protocol: &p, Port: &name})
	}
	return out
}

func byRange() (out []networkingv1.NetworkPolicyPort) {
	first, last := intstr.FromInt32(highPort), int32(highPort+9)
	for _, p := range protocols() {
		out = append(out, networkingv1.NetworkPolicyPort{Protocol: &p, Port: &first, EndPort: &last})
	}
	return out
}

// into and outOf are the policies of a rule in one direction, for the pods with this label.
func (r rule) into(all, without []string) *networkingv1.NetworkPolicy {
	p := r.policy("in", networkingv1.PolicyTypeIngress)
	if !r.none {
		in := networkingv1.NetworkPolicyIngressRule{Ports: r.ports}
		if r.peers != nil {
			in.From = r.peers(all, without)
		}
		p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{in}
	}
	return p
}

func (r rule) outOf(all, without []string) *networkingv1.NetworkPolicy {
	p := r.policy("out", networkingv1.PolicyTypeEgress)
	if !r.none {
		out := networkingv1.NetworkPolicyEgressRule{Ports: r.ports}
		if r.peers != nil {
			out.To = r.peers(all, without)
		}
		p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{out}
	}
	return p
}

func (r rule) policy(direction string, of networkingv1.PolicyType) *networkingv1.NetworkPolicy {
	name := direction + "-" + label(r.name)
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: shop},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"case": name}},
			PolicyTypes: []networkingv1.PolicyType{of},
		},
	}
}
