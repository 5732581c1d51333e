package policyshape

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Shape is a way to write a policy's subject.
type Shape string

// Shapes.
const (
	Groups    Shape = "groups"    // a port group of the subject's pods
	Sets      Shape = "sets"      // an address set of the subject's pods, on one port group of all pods
	Addresses Shape = "addresses" // the same, but the match does not name the port group
)

// The tables of the Northbound database that the load is made of.
const (
	switches     = "Logical_Switch"
	ports        = "Logical_Switch_Port"
	routers      = "Logical_Router"
	routerPorts  = "Logical_Router_Port"
	portGroups   = "Port_Group"
	addressSets  = "Address_Set"
	acls         = "ACL"
	everyPod     = "pods" // the port group of all pods, in shapes without groups of subjects
	theRouter    = "ovn_cluster_router"
	insertion    = "insert"
	deletion     = "delete"
	policyRank   = 31002
	denyRank     = 31000
	perSelector  = 5 // switches, with one or two pods on each
	policyBatch  = 250
	firstAddress = 3 // .1 is the router's, .2 the management port's
)

// Size says how large the load is.
type Size struct {
	Switches int // 5 to 255
	Pods     int // on each switch, 10 to 200
	Policies int
}

// cluster is the content of a Northbound database. A policy has one ingress rule: a subject, two selectors of peers and
// a port. Each selector is the subject of one policy and a peer of about two.
type cluster struct {
	Size
	shape     Shape
	selectors [][]pod
	peers     [][2]int // of each policy, whose subject is the selector of the same number
}

// pod is the number of a switch, and of a pod on it.
type pod struct{ node, index int }

func newCluster(size Size, shape Shape) *cluster {
	l := &cluster{Size: size, shape: shape}
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run
	for range size.Policies {
		l.selectors = append(l.selectors, l.choose(random, perSelector+random.IntN(perSelector+1)))
		l.peers = append(l.peers, [2]int{random.IntN(size.Policies), random.IntN(size.Policies)})
	}
	return l
}

// choose returns n pods, on perSelector switches.
func (l *cluster) choose(random *rand.Rand, n int) []pod {
	var out []pod
	on := random.Perm(l.Switches)[:perSelector]
	offset := random.IntN(l.Pods)
	for i := range n {
		out = append(out, pod{on[i%perSelector], (offset + i*7) % l.Pods})
	}
	return out
}

// selectorsOn returns the selectors that have a pod on a switch, or those that have none.
func (l *cluster) selectorsOn(node int, some bool) []int {
	var out []int
	for s, pods := range l.selectors {
		if slices.ContainsFunc(pods, func(p pod) bool { return p.node == node }) == some {
			out = append(out, s)
		}
	}
	return out
}

func nodeName(i int) string { return fmt.Sprintf("node-%03d", i) }

func (p pod) name() string { return fmt.Sprintf("pod-%03d-%03d", p.node, p.index) }

func (p pod) address() string { return fmt.Sprintf("10.128.%d.%d", p.node, firstAddress+p.index) }

func (p pod) mac() string { return mac(p.node, firstAddress+p.index) }

func mac(node, host int) string { return fmt.Sprintf("0a:58:0a:80:%02x:%02x", node, host) }

func isolation(node int) string { return fmt.Sprintf("iso_in_%03d", node) }

func selector(s int) string { return fmt.Sprintf("sel_%05d", s) }

func set(s int) string { return selector(s) + "_v4" }

func policyName(p int) string { return fmt.Sprintf("policy-%05d", p) }

// base returns one transaction for each switch, with its pods and its router's port, after one with what all share.
func (l *cluster) base() [][]operation {
	common := []operation{insert("NB_Global", "it", map[string]any{"name": "it"}),
		insert(routers, theRouter, map[string]any{"name": theRouter})}
	if l.shape != Groups {
		common = append(common, insert(portGroups, everyPod, map[string]any{"name": everyPod}))
	}
	out := [][]operation{common}
	for n := range l.Switches {
		out = append(out, l.node(n))
	}
	return out
}

// node is a switch with all that is on it. Its pods are isolated, as by a policy without rules.
func (l *cluster) node(n int) []operation {
	router, own, group := "rtos-"+nodeName(n), "k8s-"+nodeName(n), isolation(n)
	onSwitch := []string{"stor-" + nodeName(n), own}
	ops := []operation{
		insert(routerPorts, router, map[string]any{"name": router, "mac": mac(n, 1),
			"networks": words(fmt.Sprintf("10.128.%d.1/24", n))}),
		mutate(routers, theRouter, "ports", insertion, refs(routerPorts, router)),
		insert(ports, onSwitch[0], map[string]any{"name": onSwitch[0], "type": "router", "addresses": words(mac(n, 1)),
			"options": pairs("router-port", router)}),
		insert(ports, own, map[string]any{"name": own,
			"addresses": words(fmt.Sprintf("%s 10.128.%d.2", mac(n, 2), n))}),
	}
	var pods []string
	for i := range l.Pods {
		p := pod{n, i}
		ops = append(ops, p.port())
		pods = append(pods, p.name())
	}
	onSwitch = append(onSwitch, pods...)
	deny := map[string]any{"direction": "to-lport", "priority": denyRank, "action": "drop",
		"match": fmt.Sprintf("outport == @%s && ip", group)}
	itself := map[string]any{"direction": "to-lport", "priority": policyRank, "action": "allow-related",
		"match": fmt.Sprintf("outport == @%s && ip4.src == 10.128.%d.2", group, n)}
	ops = append(ops,
		insert(switches, nodeName(n), map[string]any{"name": nodeName(n), "ports": refs(ports, onSwitch...)}),
		insert(acls, "deny-"+group, deny), insert(acls, "own-"+group, itself),
		insert(portGroups, group, map[string]any{"name": group, "ports": refs(ports, pods...),
			"acls": refs(acls, "deny-"+group, "own-"+group)}))
	if l.shape != Groups {
		ops = append(ops, mutate(portGroups, everyPod, "ports", insertion, refs(ports, pods...)))
	}
	return ops
}

// port is the pod's port, without the switch that has it.
func (p pod) port() operation {
	both := words(p.mac() + " " + p.address())
	return insert(ports, p.name(), map[string]any{"name": p.name(), "addresses": both, "port_security": both,
		"options": pairs("requested-chassis", nodeName(p.node))})
}

// policies returns transactions with all policies and their selectors.
func (l *cluster) policies() [][]operation {
	var out [][]operation
	for first := 0; first < l.Policies; first += policyBatch {
		var ops []operation
		for s := first; s < min(first+policyBatch, l.Policies); s++ {
			ops = append(ops, l.addSelector(s, l.selectors[s])...)
			ops = append(ops, l.addPolicy(policyName(s), s, l.peers[s], 80)...)
		}
		out = append(out, ops)
	}
	return out
}

// addSelector makes a selector's rows. Each selector has an address set, as a peer of others.
func (l *cluster) addSelector(s int, pods []pod) []operation {
	var names, addresses []string
	for _, p := range pods {
		names, addresses = append(names, p.name()), append(addresses, p.address())
	}
	ops := []operation{insert(addressSets, set(s), map[string]any{"name": set(s), "addresses": words(addresses...)})}
	if l.shape == Groups {
		ops = append(ops, insert(portGroups, selector(s),
			map[string]any{"name": selector(s), "ports": refs(ports, names...)}))
	}
	return ops
}

func (l *cluster) removeSelector(s int) []operation {
	ops := []operation{remove(addressSets, set(s))}
	if l.shape == Groups {
		ops = append(ops, remove(portGroups, selector(s)))
	}
	return ops
}

// addPolicy makes a policy's ACL.
func (l *cluster) addPolicy(name string, subject int, peers [2]int, port int) []operation {
	group, match := l.subject(subject)
	acl := map[string]any{"direction": "to-lport", "priority": policyRank, "action": "allow-related",
		"match": fmt.Sprintf("%s && ip4.src == {$%s, $%s} && tcp.dst == {%d}", match, set(peers[0]), set(peers[1]), port)}
	return []operation{insert(acls, name, acl), mutate(portGroups, group, "acls", insertion, refs(acls, name))}
}

func (l *cluster) removePolicy(name string, subject int) []operation {
	group, _ := l.subject(subject)
	return []operation{mutate(portGroups, group, "acls", deletion, refs(acls, name))}
}

// subject returns the port group that has the ACLs of a policy, and the beginning of their matches.
func (l *cluster) subject(s int) (group, match string) {
	switch l.shape {
	case Groups:
		return selector(s), "outport == @" + selector(s)
	case Sets:
		return everyPod, fmt.Sprintf("outport == @%s && ip4.dst == $%s", everyPod, set(s))
	default:
		return everyPod, "ip4.dst == $" + set(s)
	}
}

// member makes a pod join or leave selectors (mutator insertion or deletion).
func (l *cluster) member(p pod, mutator string, selectors ...int) []operation {
	var ops []operation
	for _, s := range selectors {
		ops = append(ops, mutate(addressSets, set(s), "addresses", mutator, words(p.address())))
		if l.shape == Groups {
			ops = append(ops, mutate(portGroups, selector(s), "ports", mutator, refs(ports, p.name())))
		}
	}
	return ops
}

// addPod makes an isolated pod that selectors select.
func (l *cluster) addPod(p pod, selectors ...int) []operation {
	ops := []operation{p.port(), mutate(switches, nodeName(p.node), "ports", insertion, refs(ports, p.name())),
		mutate(portGroups, isolation(p.node), "ports", insertion, refs(ports, p.name()))}
	if l.shape != Groups {
		ops = append(ops, mutate(portGroups, everyPod, "ports", insertion, refs(ports, p.name())))
	}
	return append(ops, l.member(p, insertion, selectors...)...)
}

func (l *cluster) removePod(p pod, selectors ...int) []operation {
	var ops []operation
	for _, s := range selectors {
		ops = append(ops, mutate(addressSets, set(s), "addresses", deletion, words(p.address())))
	}
	// The database itself removes a port without a switch from groups.
	return append(ops, mutate(switches, nodeName(p.node), "ports", deletion, refs(ports, p.name())))
}

// String describes the load.
func (l *cluster) String() string {
	return fmt.Sprintf("%d policies as %s, %d pods on %d switches", l.Policies, l.shape, l.Switches*l.Pods, l.Switches)
}
