package services

import "strings"

// answering returns the nodes whose backends may answer a client at an address of a service, by the Kubernetes API
// documentation of internalTrafficPolicy and externalTrafficPolicy; none if packets are dropped. Where the API leaves a
// choice, the rule is that of kube-proxy, see docs/features/services.md.
func answering(c client, w way, s *service) []string {
	switch {
	case w.name == clusterIP && s.internal == "Local":
		return s.local(c.node)
	case w.name == clusterIP, s.external == "Cluster":
		return s.nodes
	case c.node == "", w.nodePort && c.node != w.entry:
		return s.local(w.entry) // for a node, another node and its pods are outside
	default: // inside the cluster, externalTrafficPolicy does not apply
		return s.nodes
	}
}

// keeps is the client that the backend must see, in the words of the tables; "" if any will do. Through the cluster IP,
// a pod that is served by a pod is seen itself. So is a client from outside at a service with externalTrafficPolicy
// Local; a node counts as outside if its own node port forwards it to another node.
func keeps(c client, w way, s *service) string {
	switch {
	case strings.HasPrefix(c.Name, "a pod on"):
		if w.name == clusterIP && s.port == podPort {
			return "client"
		}
	case s.external != "Local" || w.name == clusterIP:
	case c.node == "":
		return "outside"
	case w.nodePort && c.node == w.entry && len(s.local(c.node)) == 0:
		return c.node
	}
	return ""
}

// asks reports whether a client can use that address.
func asks(c client, w way) bool { return c.node != "" || w.name != clusterIP }
