// Package policy is the room of network policies. It makes six kinds of owners:
//
//   - a Selector for each selector that any policy has: the port group of the pods that a policy is about, and the
//     address sets of the pods that a rule names;
//   - an Isolation for each node, while there is any policy: the port groups of its isolated pods, with the ACLs that
//     deny what no rule allows;
//   - a NetworkPolicy: an ACL for what each of its rules allows;
//   - a ClusterNetworkPolicy: ACLs for what each of its rules accepts, denies or passes, in the cluster's own network
//     and in each primary network that its subject is in;
//   - a MultiNetworkPolicy: the ACLs of a NetworkPolicy in each network that it is about;
//   - a NetworkIsolation for each network that any policy is about, other than the cluster's own: what an Isolation is
//     for a node.
//
// A NetworkPolicy is about the primary network of its namespace, or else about the cluster's own.
//
// A pod's own port is in these groups. The room of pods lists it there, so that a port and its memberships come in one
// transaction: policies apply to a pod from its first packet.
package policy
