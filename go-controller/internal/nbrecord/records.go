package nbrecord

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// Records turns the records in the database into events.
type Records struct {
	// Router is the name of the cluster router that is configured.
	Router string
}

// Begin reads a database after a new connection. It fails when the database has several cluster routers; the events
// hold all the same.
func (r Records) Begin(s *cluster.State, session *ovsdb.Session) ([]cluster.Event, []cluster.Problem, error) {
	s.Config.RouterName = r.Router
	err := Router(s, session)
	s.SwitchSubnets = switches(session)
	var events []cluster.Event
	nodes, problems := Nodes(session)
	there := map[string]bool{}
	for _, n := range nodes {
		there[n.Name] = true
		events = append(events, record(n.Name, n))
	}
	for name, n := range s.Nodes {
		if n.ByHand && !there[name] {
			events = append(events, record(name, nil))
		}
	}
	return events, problems, err
}

// Changed reads the rows of owners again: somebody may have set up a node by hand, or undone that.
func (Records) Changed(s *cluster.State, session *ovsdb.Session, owners []nb.Owner) ([]cluster.Event,
	[]cluster.Problem) {
	var events []cluster.Event
	var problems []cluster.Problem
	for _, o := range owners {
		if o.Kind != names.KindNode && o.Kind != names.KindGateway {
			continue
		}
		have := s.Nodes[o.Name]
		if have != nil && !have.ByHand {
			continue
		}
		text, ok := session.ByHandRecord(o.Name)
		if !ok {
			events = append(events, record(o.Name, nil))
			continue
		}
		n, bad := cluster.ParseByHand(o.Name, text)
		problems = append(problems, bad...)
		if len(bad) > 0 && have != nil {
			continue // the known values stay, and the record is written again
		}
		events = append(events, record(o.Name, n))
	}
	return events, problems
}

// record is the event that the record of a node is n, or with nil, that it was deleted.
func record(name string, n *cluster.Node) cluster.Event {
	e := cluster.Event{Ref: cluster.Ref{Kind: cluster.KindNodeRecord, Name: cluster.Name{Name: name}}}
	if n != nil {
		e.New = &cluster.NodeRecord{Node: n}
	}
	return e
}
