package liveness

import (
	"log/slog"
	"maps"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/nbrecord"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// ReasonGatewayOut is the reason of the Problem that a gateway went out of service.
const ReasonGatewayOut = "GatewayOutOfService"

// Leases reports which nodes' Leases nobody renews.
type Leases interface {
	// Signal delivers a value when Expired has changed. Values merge.
	Signal() <-chan struct{}
	// Follow sets the nodes to watch.
	Follow(nodes []string)
	// PresumeExpired takes the Leases of nodes as expired until one of their Leases is renewed.
	PresumeExpired(nodes []string)
	// Expired lists the followed nodes whose Leases nobody renews.
	Expired() map[string]bool
}

// Gateways reports which gateways are down, sooner than their Nodes do.
type Gateways struct {
	leases   Leases // nil: only the Nodes' conditions count
	metrics  *metrics.Master
	log      *slog.Logger
	down     map[string]bool // the verdicts that Take and Recall returned
	recalled bool            // Recall was called
	presumed map[string]bool // the gateways that Recall returned, until they come back or are deleted
}

// NewGateways is a monitor that follows no gateway yet.
func NewGateways(l Leases, m *metrics.Master, log *slog.Logger) *Gateways {
	return &Gateways{leases: l, metrics: m, log: log, down: map[string]bool{}, presumed: map[string]bool{}}
}

// Signal delivers a value when Take has something. Values merge.
func (g *Gateways) Signal() <-chan struct{} {
	if g.leases == nil {
		return nil
	}
	return g.leases.Signal()
}

// Take returns which gateways went down or came back since the last call.
func (g *Gateways) Take() []cluster.Event {
	if g.leases == nil {
		return nil
	}
	was, is := g.down, g.leases.Expired()
	if maps.Equal(was, is) {
		return nil
	}
	g.down = is
	both := maps.Clone(is)
	maps.Copy(both, was)
	var events []cluster.Event
	for name := range both {
		if was[name] != is[name] {
			events = append(events, verdict(name, is[name]))
		}
	}
	return events
}

// Recall takes gateways as down that the last master had found down. Otherwise packets would be sent to them until they
// are found down again. A gateway that is alive renews its Lease within seconds. Recall acts only on its first call,
// before the first full pass.
func (g *Gateways) Recall(s *cluster.State, session *ovsdb.Session) []cluster.Event {
	if g.leases == nil || g.recalled {
		return nil
	}
	g.recalled = true
	down := nbrecord.DownGateways(s, session.View())
	if len(down) == 0 {
		return nil
	}
	g.leases.PresumeExpired(down)
	g.down = maps.Clone(g.down) // Take returns the other gateways that Leases reports
	var events []cluster.Event
	for _, name := range down {
		g.down[name], g.presumed[name] = true, true
		g.log.Warn("gateway is not in service", "node", name, "reason", "it was not when the last master wrote")
		events = append(events, verdict(name, true))
	}
	return events
}

// verdict is the event that a gateway is down, or that it no longer is.
func verdict(node string, down bool) cluster.Event {
	e := cluster.Event{Ref: (&cluster.GatewayDown{Node: node}).Ref()}
	if down {
		e.New = &cluster.GatewayDown{Node: node}
	}
	return e
}

// Changed reports gateways that went out of service, logs those that came back, and counts them. A new gateway that is
// not ready yet is no Problem.
func (g *Gateways) Changed(s *cluster.State, changes []cluster.Change) []cluster.Problem {
	var problems []cluster.Problem
	nodes := false
	for _, c := range changes {
		if c.Ref.Kind != cluster.KindNode {
			continue
		}
		nodes = true
		was, is := outage(c.Old), outage(c.New)
		if is == "" {
			delete(g.presumed, c.Ref.Name.Name) // it is back or gone: the next outage is news
		}
		switch n, there := c.New.(*cluster.Node); {
		case !there || was == is:
		case is != "" && g.presumed[n.Name]: // the last master reported that
		case is == "" && n.Gateway != nil:
			g.log.Info("gateway is in service", "node", n.Name, "was", was)
		case is == "":
		case isGateway(c.Old):
			problems = append(problems, cluster.Problem{Ref: n.Ref(), UID: n.UID, Reason: ReasonGatewayOut,
				Message: "the gateway is out of service: " + is +
					": other nodes' pods leave through the other gateways, if any works"})
		default:
			g.log.Warn("gateway is not in service", "node", n.Name, "reason", is)
		}
	}
	if !nodes {
		return nil
	}
	gateways := index.GatewaysOf(s)
	if g.leases != nil {
		g.leases.Follow(gateways.List())
	}
	for family, is4 := range map[string]bool{"ipv4": true, "ipv6": false} {
		working, all := gateways.Count(is4)
		g.metrics.Gateways.WithLabelValues(family, "working").Set(float64(working))
		g.metrics.Gateways.WithLabelValues(family, "out").Set(float64(all - working))
	}
	return problems
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
