package oracles

import "slices"

// library is what answers beside the rows. It knows one cluster at a time.
type library interface {
	// name is that of its repository.
	name() string
	// load takes the place of the cluster before.
	load(q *questions)
	// allows tells whether a connection may be opened. A reason is why the library can't be asked.
	allows(c connection) (allowed bool, reason deviation)
}

const (
	kubeNetworkPolicies = "kube-network-policies"
	cyclonus            = "cyclonus"
	cilium              = "cilium"
)

// libraries lists all of them.
func libraries(w without) []library {
	return []library{newPacketEngine(w), &cyclonusMatcher{without: w}, newPolicyEngine(w)}
}

// deviation is what a library does not say as the API's text does, or where the text is open.
type deviation string

// The deviations. Everything else is asked as it is: numbers of ports and ranges, TCP, UDP, SCTP, ICMP as a protocol
// without ports, both families, empty and missing lists of peers and ports, addresses of nodes and of host-network
// pods, priorities and passing on. The sets have nothing that an API server refuses, and no empty list of rules, which
// it does not store. Libraries do not hear of pods that have finished or are on no node: policies select none of them.
const (
	itself            deviation = "a pod that reaches itself"
	ownNode           deviation = "the pod's own node"
	clusterPolicies   deviation = "an end that a ClusterNetworkPolicy is about"
	notInWithoutLabel deviation = "NotIn, for what lacks the label"
	emptyValue        deviation = "matchLabels with an empty value, for what lacks the label"
	portOfBlock       deviation = "egress to an ipBlock and a named port"
	otherDirection    deviation = "tier Baseline, for pods with a NetworkPolicy in the other direction only"
	sidecar           deviation = "a named port of a sidecar"
	managementPort    deviation = "a peer of nodes, and a management port"
	domainInside      deviation = "a domain name with an address inside the cluster"
	unnamedDirection  deviation = "rules of a direction that policyTypes does not name"
	insideBlock       deviation = "an ipBlock, or network, with addresses of pods and nodes"
	noNamespace       deviation = "a selector of namespaces with NotIn or DoesNotExist, for what is no pod"
	isolated          deviation = "tier Baseline, for pods that NetworkPolicies isolate"
	samePriority      deviation = "ClusterNetworkPolicies of the same tier and priority"
)

// deviates is a deviation of some libraries.
type deviates struct {
	what deviation
	of   []string // names of libraries
	// how is what the test does: it does not ask, or it changes this one thing.
	how string
	// why the rows are right.
	why string
}

// deviations lists all of them.
func deviations() []deviates {
	all := []string{kubeNetworkPolicies, cyclonus, cilium}
	return []deviates{
		{itself, all, notAsked, `"A pod cannot block access to itself". The libraries take it for any pod.`},
		{ownNode, []string{cyclonus, cilium}, notAsked,
			`"Traffic to and from the node where a Pod is running is always allowed". Cyclonus knows no nodes, and Cilium ` +
				"knows the own node by a setting of its agent, not by its policies."},
		{ownNode, []string{kubeNetworkPolicies}, "NetworkPolicies do not deny it; ClusterNetworkPolicies may",
			"The same text. This library's packet filter lets the host's packets pass before policies are asked."},
		{clusterPolicies, []string{cyclonus}, notAsked, "Cyclonus knows NetworkPolicies alone."},
		{notInWithoutLabel, []string{cyclonus}, "a selector with NotIn is two: with the label, and without it",
			`"tier notin (...)" also selects "all resources with no labels with the tier key". Cyclonus wants the label.`},
		{emptyValue, []string{cyclonus}, `"key: ''" is written as "key In ['']"`,
			"A label with an empty value is a label. Cyclonus takes a missing label for it."},
		{portOfBlock, all, "such rules allow nothing",
			"The API is open here: blocks are for addresses outside, and named ports belong to pods. The libraries look up " +
				"the pod of the address. docs/features/policy.md says that this matches nothing."},
		{otherDirection, []string{kubeNetworkPolicies}, "NetworkPolicies are divided by direction",
			`Tier Baseline is for "Pods not selected by a v1.NetworkPolicy". NetworkPolicies' isolation for ingress and for ` +
				`egress is "declared independently". So Northbound reads this for each direction, as Cilium does, and this ` +
				"library for both."},
		{sidecar, []string{kubeNetworkPolicies}, "sidecars are written as containers",
			"An init container with restartPolicy Always runs beside the others. This library reads spec.containers only."},
		{managementPort, []string{kubeNetworkPolicies}, "status.addresses of nodes has the management ports, too",
			"The API names status.addresses. Northbound adds the management port's address, which leads to the same host."},
		{domainInside, []string{kubeNetworkPolicies, cilium}, "names do not have such addresses",
			"The API is open here. Who writes the records of a name must not open pods or nodes."},
		{unnamedDirection, []string{cilium}, "such rules are left out",
			`"policyTypes" says which rules a policy has. Cilium reads rules of a direction that it does not name.`},
		{insideBlock, []string{cilium}, "pods and nodes have the labels that Cilium gives to addresses outside",
			"A block is a range of addresses, whoever has them. Cilium's blocks are for what is outside the cluster."},
		{noNamespace, []string{cilium}, "all selectors of namespaces also want the label that each has",
			"Selectors of namespaces select pods. Cilium takes an address outside for one of a namespace without labels."},
		{isolated, []string{cilium}, "the NetworkPolicies' isolation is a rule that denies",
			`Tier Baseline is for "Pods not selected by a v1.NetworkPolicy". Cilium asks it before it denies the rest.`},
		{samePriority, []string{cilium}, "they get numbers of their own, the oldest policy first",
			"The API is open here. Cilium has their rules count as if they were of one policy."},
	}
}

const notAsked = "it does not ask"

// without is the deviations about which the test does nothing.
type without []deviation

// adjusts tells whether the test does something about a deviation.
func (w without) adjusts(d deviation) bool { return !slices.Contains(w, d) }
