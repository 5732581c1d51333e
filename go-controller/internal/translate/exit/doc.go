// Package exit translates how pods leave a primary network: on each node that has pods in it, a gateway router gives
// what they send an address of the node's own subnet. From there it is as if one pod of the cluster's own network had
// sent it: gateways, outages and pins treat it so.
//
// The routers also have load balancers for the Kubernetes API and the cluster's DNS. They let pods of primary networks
// reach nothing else of the cluster's own network.
package exit
