// Package remote asks the diagnostics servers of a cluster from a laptop. A request takes the way of `kubectl
// port-forward`: through the API server and the kubelet to the loopback address of the server's node. It carries a
// token that is good for this one server.
package remote
