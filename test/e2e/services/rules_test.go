package services

// answering are the nodes whose backends may answer a client at an address of a
// service, by the Kubernetes API documentation of internalTrafficPolicy and
// externalTrafficPolicy; none if packets are dropped. What the API leaves open
// is as in kube-proxy, see docs/features/services.md.
func answering(c client, w way, s *service) []string {
	switch {
	case w.name == clusterIP && s.internal == "Local":
		return s.local(c.node)
	case w.name == clusterIP, s.external == "Cluster":
		return s.nodes
	case c.node == "", w.nodePort && c.node != w.entry:
		return s.local(w.entry) // to a node, another one and its pods are outside
	default: // within the cluster there is no policy for external traffic
		return s.nodes
	}
}

// asks tells whether a client has a way to that address.
func asks(c client, w way) bool { return c.node != "" || w.name != clusterIP }
