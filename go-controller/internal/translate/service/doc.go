// Package service translates services with a cluster IP. Each becomes one load balancer per protocol, in the load
// balancer group that every node's switch lists: a service costs the same number of rows whatever the number of nodes.
// Its VIPs are the addresses and ports that the service holds (index.VIPs). Their backends are the endpoints that
// cluster.Choose picks. Without any, a connection is rejected at once instead of timing out.
//
// VIPs whose backends depend on the client's node are in load balancers of their own, for zones or for nodes
// (placements). No switch has a VIP twice. Packets to a VIP that a switch does not have end at that switch (topology,
// role "unserved").
//
// The load balancers serve clients in the cluster. For these, externalTrafficPolicy Local changes nothing except on
// node ports (Kubernetes API, ServiceSpec.externalTrafficPolicy). Clients outside the cluster connect through the
// nodes' kernels, which forward to cluster.Service.OutsidePort of a ClusterIP, or with that policy to an endpoint.
// Services with that policy also have policies on the cluster router, which return the replies to the node's kernel.
package service
