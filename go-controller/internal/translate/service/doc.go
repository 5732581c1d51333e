// Package service translates services with a cluster IP: one load balancer per
// protocol, in the load balancer group that every node's switch carries, so that
// a service costs the same number of rows whatever the number of nodes. What
// clients connect to is the VIPs that the service has (cluster.State.Holder);
// what answers is what cluster.Choose picks of the endpoints; with none, a connection is
// rejected at once rather than left to time out.
//
// VIPs whose backends depend on the client's node are in load balancers of their
// own, for zones or for nodes (places); no switch has a VIP twice. Where a VIP is
// in none, packets to it end at the node's switch (topology, role "unserved").
//
// The load balancers are those of clients in the cluster, for whom
// externalTrafficPolicy Local changes nothing but on node ports (Kubernetes API,
// ServiceSpec.externalTrafficPolicy). Clients from outside come by way of nodes'
// kernels, which send them to cluster.Service.OutsidePort of a ClusterIP, or with
// that policy to an endpoint; of such a service there are rows, on the cluster
// router, that lead the answers to them back there.
package service
