// Package tenant is the room of tenants. Each has a port group of its namespaces' pods, whose ACLs deny what pods of
// others send them. Its owner cluster.GlobalTenant has what reaches all of them. What is not denied is left to
// policies.
//
// A pod's own port is in the group of its tenant. The room of pods lists it there, so that a port and its membership
// come in one transaction.
package tenant
