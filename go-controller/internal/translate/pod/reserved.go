package pod

import (
	"fmt"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// ReasonNameReserved is the reason of an Event on a pod whose port would have the name of a gateway's port.
const ReasonNameReserved = "PodNameReserved"

// reserved reports a pod whose port would have the name of a gateway's port to its bridge: the names of both are two
// names with an underscore between, and a database takes only one. The gateway has it, whichever was there first: else
// whoever may name a namespace like a bridge could take a node's gateway away.
func reserved(s *cluster.State, p *cluster.Pod) []cluster.Problem {
	n, port := s.Nodes[p.Name.Name], names.Own.LogicalPort(p.Name.Namespace, p.Name.Name, "")
	if n == nil || n.Gateway == nil || n.Gateway.Port != port {
		return nil
	}
	return []cluster.Problem{{Ref: p.Ref(), UID: p.UID, Reason: ReasonNameReserved, Message: fmt.Sprintf(
		"metadata.name: the port of %s/%s would be called %s, as the port of Node %s to its bridge %s: "+
			"the pod gets no network; want another name, or another namespace",
		p.Name.Namespace, p.Name.Name, port, n.Name, p.Name.Namespace)}}
}

// namesakes lists the pods for which reserved may say something else after a change of a node.
func namesakes(s *cluster.State, old, now *cluster.Node) (out []cluster.Name) {
	was, is := gatewayPort(old), gatewayPort(now)
	if was == is {
		return nil
	}
	for _, port := range []string{was, is} {
		namespace, pod, _ := strings.Cut(port, "_")
		if n := (cluster.Name{Namespace: namespace, Name: pod}); s.Pods[n] != nil {
			out = append(out, n)
		}
	}
	return out
}

// gatewayPort is a node's port to its bridge, "" if it has none.
func gatewayPort(n *cluster.Node) string {
	if n == nil || n.Gateway == nil {
		return ""
	}
	return n.Gateway.Port
}
