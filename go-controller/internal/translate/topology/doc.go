// Package topology translates the shape of the network:
//
//   - the cluster: its distributed router, the join switch between that and the gateway routers, the load balancer
//     group of all nodes, and the policies that drop packets to a ClusterIP that no service has
//   - zones: a load balancer group each
//   - nodes: a logical switch each, with a port to the router, a management port, and a route by which pods leave
//   - gateways: a gateway router each, with its external switch, routes, SNAT, and pinned subnets
//   - networks of users: their switches and routers, on the nodes that have pods in them, and their conditions
//   - multicast, and the meter of ACLs that log
package topology
