package names

import "net/netip"

// Roles tell an owner's rows apart. A role is part of a row's identity (see
// RowUUID), so renaming one re-creates the rows.
const (
	RoleRouter       = "router"        // Cluster: the distributed router
	RoleJoin         = "join"          // Cluster: the join switch
	RoleRouterToJoin = "rtoj"          // Cluster: router port to the join switch
	RoleJoinToRouter = "jtor"          // Cluster: join switch port to the router
	RoleLBGroup      = "lb-group"      // Cluster: the load balancer group of all nodes; Zone: that of its nodes
	RoleExitsLBGroup = "exit-lb-group" // Cluster: that of a primary network's exits
	RoleDiscard      = "discard"       // Cluster, with the range of ClusterIPs: what no load balancer took ends here
	RoleSwitch       = "switch"        // Node: its logical switch; Cluster: the switch of a network that has one
	RoleRouterToNode = "rtos"          // Node: router port to its switch
	RoleNodeToRouter = "stor"          // Node: switch port to the router
	RoleManagement   = "management"    // Node: its management port
	RoleExternal     = "external"      // Gateway: the external switch
	RoleLocalnet     = "localnet"      // Gateway, Cluster: the switch's port to the bridge
	RoleRouterToOut  = "rtoe"          // Gateway: router port to the external switch
	RoleOutToRouter  = "etor"          // Gateway: external switch port to the router
	RoleToCluster    = "to-cluster"    // Gateway, with the cluster subnet: route of its router to the pods
	RoleDefault      = "default"       // Gateway, with the family: default route of its router
	RoleLeave        = "leave"         // Gateway, with the family: default route of the cluster router through it
	RoleToGateway    = "to-gateway"    // Gateway, with the family: route of the cluster router to it on the join switch
	RoleOwnPods      = "own-pods"      // Gateway, with the family: route of its node's pods through it
	RoleRampout      = "rampout"       // Gateway, with the subnet: policy that pins its pods to the gateways that list it
	RoleToHost       = "to-host"       // Gateway, with the family, or the address: route to the node's own address
	RoleLeakGuard    = "leak-guard"    // Gateway: the ACL that lets no address of a pod out
	RoleRouterToPods = "rtox"          // Exit: router port to the node's switch
	RolePodsToRouter = "xtor"          // Exit: node's switch's port to the router
	RoleGuardIn      = "guard-in"      // Exit, with the family: policy that keeps others out of the network
	RoleGuardSource  = "guard-source"  // Exit, with the family: policy that drops what pretends to be of the network
	RoleGuardOut     = "guard-out"     // Exit, with the range: policy that keeps the network's pods from the cluster's own
	RoleSNAT         = "snat"          // Gateway, with the cluster subnet: its pods leave with the node's address
	RoleSNATClients  = "snat-clients"  // Exit, with the cluster subnet: what comes from there has the exit's address
	RoleEgress       = "egress"        // Node, with the family: route of its pods out; NetworkPolicy: as RoleIngress
	RoleHealthCheck  = "health-check"  // Service, after the load balancer's role and before the VIP
	RoleUnserved     = "unserved"      // Cluster, Node: the ACL that drops what is for a ClusterIP and got no backend
	RoleSpoofGuard   = "spoof-guard"   // Cluster, Node: the ACL that drops what only the network may send
	RoleHairpin      = "hairpin"       // Node: what its own kernel gets back is not tracked twice
	RolePort         = "port"          // Pod: its logical switch port
	RoleIngressLimit = "ingress-limit" // Pod: the limit of what it receives
	RoleEgressLimit  = "egress-limit"  // Pod: the limit of what it sends
	RoleAddresses    = "addresses"     // Namespace, Tenant, with the family: its address set
	RoleLoadBalancer = "load-balancer" // Service, with the protocol, and the nodes that it is for unless that is all
	RoleReply        = "reply"         // Service, with node and family: route of its endpoints' replies to outside clients
	RoleInside       = "inside"        // Cluster, with the cluster subnet: policy for traffic that stays in it
	RoleGroup        = "group"         // Selector, Tenant: the port group of its pods
	RoleNamedPort    = "named-port"    // Selector, with protocol, name, number and family: the pods with this port
	RoleGroupIn      = "group-in"      // Isolation: the port group of its pods that policies with Ingress select
	RoleGroupOut     = "group-out"     // Isolation: the port group of its pods that policies with Egress select
	RoleDenyIn       = "deny-in"       // Isolation: the ACL that denies what no rule allows; NetworkPolicy: which logs it
	RoleDenyOut      = "deny-out"      // Isolation, NetworkPolicy: the same for connections of the pods
	RoleNeighbourIn  = "nd-in"         // NetworkIsolation: the ACL that lets neighbour discovery in
	RoleNeighbourOut = "nd-out"        // NetworkIsolation: the same for what pods send
	RoleOwnIn        = "own-in"        // Isolation: the ACL that lets the node in, and a pod itself through a service
	RoleOwnOut       = "own-out"       // Isolation: the ACL that lets pods reach their node, and answer health checks
	RoleGroupLocked  = "group-locked"  // Isolation: the port group of its pods that are in primary networks
	RoleDenyLocked   = "deny-locked"   // Isolation: the ACL that denies all connections of these
	RoleOpenLocked   = "open-locked"   // Isolation: the ACL that lets in at the ports which these open
	RoleItself       = "itself"        // policies of both kinds, after RoleIngress...: for a pod that reaches itself
	RoleIngress      = "ingress"       // policies of both kinds, with the rule and what the ACL is for
	RoleNew          = "new"           // policies of both kinds, after RoleIngress...: the ACL that logs new connections
	RoleUnblock      = "unblock"       // both Isolations, with the tier: leaves denied connections to later tiers
	RoleLinkLocal    = "link-local"    // Cluster, NetworkIsolation: the ACL that drops what has link-local addresses
	RoleOutside      = "outside"       // ClusterNetworkPolicy, after RoleEgress...: peers that are not in the network
	RoleMulticast    = "multicast"     // ClusterNetworkPolicy, after RoleEgress...: what goes to all pods of the network
	RoleDNS          = "dns"           // policies of both kinds, after RoleEgress...: the cluster's DNS
	RoleAPI          = "api"           // ClusterNetworkPolicy, after RoleEgress...: the Kubernetes API
	RoleAnswer       = "answer"        // Isolation, with the family: lets all pods answer OVN's health checks
	RoleLogMeter     = "log-meter"     // Cluster: the meter that limits how often an ACL logs
	RoleLogBand      = "log-band"      // Cluster: its limit
	RoleMcastRouters = "mcast-routers" // Cluster: the port group of the nodes' switch ports to the router
	RoleMcastRouteIn = "mcast-from"    // Cluster: the ACL that lets multicast into a node's switch
	RoleMcastRoute   = "mcast-to"      // Cluster: the ACL that lets multicast out of a node's switch
	RoleMcastDenyOut = "mcast-off-out" // Cluster: the ACL that drops all other multicast of pods
	RoleMcastDenyIn  = "mcast-off-in"  // Cluster: the same for what pods receive
	RoleMcastGroup   = "mcast"         // Namespace: the port group of its pods, if they may use multicast
	RoleMcastOut     = "mcast-out"     // Namespace: the ACL that lets its pods send multicast
	RoleMcastAfterLB = "mcast-out-lb"  // Namespace: the same, in the stage where policies for egress are
	RoleMcastIn      = "mcast-in"      // Namespace, with the family: the ACL that lets its pods receive it from each other
	RolePass         = "pass"          // Tenant, with the family: the ACL that leaves what it lets in to policies
	RoleDeny         = "deny"          // Tenant, with the family: the ACL that denies what other tenants' pods send
	ClusterOwner     = "cluster"       // the name of the one owner of kind Cluster
	UserOwner        = "user-defined"  // the same in the network of a UserDefinedNetwork
)

// FamilyRole is a role of which there is one per address family.
func FamilyRole(role string, f Family) string { return role + "-" + string(f) }

// NodeRole is a role of which there is one per node.
func NodeRole(role, node string) string { return role + "-" + node }

// PrefixRole is the role of one of several rows that differ by a range of
// addresses.
func PrefixRole(role string, p netip.Prefix) string { return role + "-" + p.String() }

// Rows that several features refer to. table is the OVN table, which this
// package does not spell out.

// ClusterRow is the UUID of a row of the cluster as a whole.
func ClusterRow(table, role string) string {
	return RowUUID(table, KindCluster, ClusterOwner, role, "")
}

// ZoneOwner is the name of the owner of a zone's rows; zone is "" for the nodes
// that are in none.
func ZoneOwner(zone string) string {
	if zone == "" {
		return noZone
	}
	return zone
}

// OwnedZone is the inverse of ZoneOwner.
func OwnedZone(owner string) string {
	if owner == noZone {
		return ""
	}
	return owner
}

// noZone can't be the value of a label, which begins with a letter or digit.
const noZone = "-"

// ZoneRow is the UUID of a row of a zone.
func ZoneRow(table, zone, role string) string {
	return RowUUID(table, KindZone, ZoneOwner(zone), role, "")
}

// NodeRow is the UUID of a row of a node with Kubernetes UID uid. owner is the node's name, or what Network.Owner makes
// of it.
func NodeRow(table, owner, role, uid string) string {
	return RowUUID(table, KindNode, owner, role, uid)
}
