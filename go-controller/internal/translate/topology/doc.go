// Package topology translates the cluster itself (its distributed router, the
// join switch between it and the gateway routers, the load balancer group that
// every node carries) and its nodes (each a logical switch, its two ports to
// the router, its management port with an ACL for what the node gets back
// through it, and the route by which its pods leave the
// cluster).
package topology
