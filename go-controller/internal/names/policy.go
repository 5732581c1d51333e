package names

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
)

// Priorities of ACLs (ovn-nb(5), ACL priority: 0 to 32767). Those of the network itself are above those of policies.
const (
	ACLSpoofGuard      = 32010 // no policy allows a pod to pass for the network
	ACLLinkLocal       = 32009 // no pod evades policies by addresses that no set has
	ACLUnserved        = 32001 // no policy allows packets that no load balancer takes
	ACLHairpin         = 32000 // what a node sends to itself through a service is no policy's business
	ACLMulticastRouter = 31013 // multicast between a node's switch and the router
	ACLMulticastAllow  = 31012 // multicast of namespaces that may use it: no policy is about it
	ACLMulticastDeny   = 31011 // all other multicast
	ACLTenantPass      = 31006 // what tenants have nothing against is left to policies
	ACLTenantDeny      = 31005 // what comes from other tenants' pods
	ACLLocked          = 31004 // what pods of primary networks send in the cluster's own
	ACLPolicyAllow     = 31002 // what a rule of a NetworkPolicy allows
	ACLPolicyLogged    = 31001 // the same as ACLPolicyDeny, in a namespace that logs it
	ACLPolicyDeny      = 31000 // all else of an isolated pod
	ACLLeakGuard       = 1000  // the only ACL of an external switch: nothing leaves with a pod's own address
)

// Tiers of ACLs (ovn-nb(5), ACL tier), asked in their order. What policies have nothing to do with is in tier 0, as
// are NetworkPolicies as long as there is no ClusterNetworkPolicy.
const (
	TierAdmin = 1 // ClusterNetworkPolicies of tier Admin
	TierLast  = 2 // NetworkPolicies, and below them ClusterNetworkPolicies of tier Baseline
)

// Priorities of ACLs beside ClusterNetworkPolicies.
const (
	ACLAnswer  = 31002 // what no ClusterNetworkPolicy decides about
	ACLUnblock = 0
)

// ClusterPolicyPlaces is how many rules of one direction ClusterNetworkPolicies of the same priority have room for.
const ClusterPolicyPlaces = 25

// ClusterPolicyACL is the priority of the ACLs of a rule of ClusterNetworkPolicies. place counts the rules of policies
// of the same tier and priority, from 0 on. Rules for which there is no room share the last place.
func ClusterPolicyACL(priority, place int) int {
	return 30000 - ClusterPolicyPlaces*priority - min(place, ClusterPolicyPlaces-1)
}

// RuleNameKey is the external_ids key of an ACL that has the name of its rule.
const RuleNameKey = "k8s.ovn.org/rule-name"

// RuleKey is the external_ids key of an ACL that says which rule of its owner it is for, such as "ingress:0".
const RuleKey = "k8s.ovn.org/rule"

// SelectorKey is the external_ids key of a selector's groups and sets that says what it selects.
const SelectorKey = "k8s.ovn.org/selector"

// The names of port groups and address sets are symbols of OVN's matches: letters, digits, '_' and '.', and no digit
// first (ovn-sb(5), "Symbols").

// SelectorGroup is the port group of the pods that a selector selects. hash is the selector's.
func SelectorGroup(hash string) string { return "sel_" + hash }

// SelectorAddressSet is the address set of the pods that a selector selects.
func SelectorAddressSet(hash string, f Family) string { return SelectorGroup(hash) + "_" + string(f) }

// PortAddressSet is the address set of those pods among them that know a port by a name and have it at a number.
func PortAddressSet(hash, protocol, port string, number uint16, f Family) string {
	return SelectorGroup(hash) + "_" + strings.ToLower(protocol) + "_" + short(port) + "_" + strconv.Itoa(int(number)) +
		"_" + string(f)
}

// NamedPortRole is the role of such a set.
func NamedPortRole(protocol, port string, number uint16, f Family) string {
	return FamilyRole(RoleNamedPort+"-"+strings.ToLower(protocol)+"-"+port+"="+strconv.Itoa(int(number)), f)
}

// ACLConntrackOption is the key in NB_Global options that has ACLs match ports as connection tracking has them, so that
// they also match fragments over the userspace datapath (ovn-nb(5), OVN 25.03.3 and later). ovn-northd copies it to
// SB_Global.
const ACLConntrackOption = "acl_ct_translation"

// MulticastRouters is the port group of the switch ports that lead to the cluster router. It lists the ACLs that hold
// on all nodes' switches. Those of multicast were the first: hence its name, which databases keep.
const MulticastRouters = "mcast_routers"

// MulticastGroup is the port group of the pods of a namespace that may use multicast.
func MulticastGroup(namespace string) string { return "mcast_" + short(namespace) }

// TenantGroups begins the names of the port groups of tenants' pods.
const TenantGroups = "tenant_"

// TenantGroup is the port group of the pods of a tenant.
func TenantGroup(tenant string) string { return TenantGroups + short(tenant) }

// NodesAddressSet is the address set of the nodes' management ports.
func NodesAddressSet(f Family) string { return "nodes_" + string(f) }

// IngressGroup is the port group of a node's pods that any policy with Ingress selects. Only clients that a rule allows
// connect to them.
func IngressGroup(node string) string { return "iso_in_" + short(node) }

// EgressGroup is the port group of a node's pods that any policy with Egress selects. They connect only to servers that
// a rule allows.
func EgressGroup(node string) string { return "iso_out_" + short(node) }

// LockedGroup is the port group of a node's pods that are in primary networks. They connect to nothing in the cluster's
// own network.
func LockedGroup(node string) string { return "locked_" + short(node) }

// short is a hash of a name that may have any character, 20 hexadecimal digits.
func short(name string) string {
	sum := sha1.Sum([]byte(name))
	return hex.EncodeToString(sum[:10])
}

// SelectorRow is the UUID of a row of a selector.
func SelectorRow(table, hash, role string) string {
	return RowUUID(table, KindSelector, hash, role, "")
}

// TenantRow is the UUID of a row of a tenant.
func TenantRow(table, tenant, role string) string {
	return RowUUID(table, KindTenant, tenant, role, "")
}

// NetworkIsolationRow is the UUID of a row about the isolated interfaces in a network.
func NetworkIsolationRow(table string, n Network, role string) string {
	return RowUUID(table, KindNetworkIsolation, string(n), role, "")
}

// IsolationRow is the UUID of a row about a node's isolated pods. uid is the node's.
func IsolationRow(table, node, role, uid string) string {
	return RowUUID(table, KindIsolation, node, role, uid)
}
