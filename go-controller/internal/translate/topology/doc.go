// Package topology translates the cluster itself (its distributed router, the
// join switch between it and the gateway routers, the load balancer group that
// every node carries, and the policies that drop what is for a ClusterIP that
// nobody has), the zones that nodes are in, and its nodes (each a logical
// switch, its two ports to the router, its management port with an ACL for what
// the node gets back through it, and the route by which its pods leave the
// cluster).
package topology
