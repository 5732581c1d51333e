package reconcile

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// ReasonGatewayOut is the reason of the Problem that a gateway went out of
// service.
const ReasonGatewayOut = "GatewayOutOfService"

// tellGateways tells of gateways that went out of service, or came back, with
// changes, and counts them. One that is new comes into service when it is
// ready: that is no Problem.
func (l *Loop) tellGateways(changes []cluster.Change) {
	told := false
	for _, c := range changes {
		if c.Ref.Kind != cluster.KindNode {
			continue
		}
		told = true
		was, is := outage(c.Old), outage(c.New)
		switch n, there := c.New.(*cluster.Node); {
		case !there || was == is:
		case is == "" && n.Gateway != nil:
			l.Log.Info("gateway is in service", "node", n.Name, "was", was)
		case is == "":
		case isGateway(c.Old):
			l.report(cluster.Problem{Ref: n.Ref(), UID: n.UID, Reason: ReasonGatewayOut,
				Message: "the gateway is out of service: " + is + ": other nodes' pods leave through the other gateways, if any works"})
		default:
			l.Log.Warn("gateway is not in service", "node", n.Name, "reason", is)
		}
	}
	if !told {
		return
	}
	if l.Life != nil {
		l.Life.Follow(l.State.Gateways())
	}
	l.countGateways()
}

// countGateways brings the metrics of gateways up to date.
func (l *Loop) countGateways() {
	for family, is4 := range map[string]bool{"ipv4": true, "ipv6": false} {
		working, all := l.State.Working(is4)
		l.Metrics.Gateways.WithLabelValues(family, "working").Set(float64(working))
		l.Metrics.Gateways.WithLabelValues(family, "out").Set(float64(all - working))
	}
}

// outage is why the gateway of a node is out of service, "" when it is not.
func outage(o cluster.Object) string {
	if n, ok := o.(*cluster.Node); ok {
		return n.Outage()
	}
	return ""
}

func isGateway(o cluster.Object) bool {
	n, ok := o.(*cluster.Node)
	return ok && n.Gateway != nil
}
