package services

import "strings"

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

// keeps is whom the backend must see, as the tables say it: the client itself
// through the cluster IP if it is a pod (and the backend too), and from outside of
// a service of externalTrafficPolicy Local, as which a node counts that is led to
// other nodes from its own. "" leaves it open.
func keeps(c client, w way, s *service) string {
	switch {
	case strings.HasPrefix(c.name, "a pod on"):
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

// asks tells whether a client has a way to that address.
func asks(c client, w way) bool { return c.node != "" || w.name != clusterIP }
