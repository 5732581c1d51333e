package reconcile

import (
	"maps"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// takeLife follows which gateways are silent now.
func (l *Loop) takeLife() {
	if l.Life == nil || !l.synced {
		return
	}
	was, is := l.unheard, l.Life.Silent()
	if maps.Equal(was, is) {
		return
	}
	l.unheard = is
	both := maps.Clone(is)
	maps.Copy(both, was)
	var changes []cluster.Change
	for name := range both {
		n := l.State.Nodes[name]
		if n == nil || was[name] == is[name] {
			continue
		}
		if c, ok := l.State.Apply(l.unheardOf(cluster.Event{Ref: n.Ref(), New: n})); ok {
			changes = append(changes, c)
		}
	}
	if len(changes) > 0 {
		l.follow(changes)
	}
}

// unheardOf is an event of a Node as it is with what Life says of it.
func (l *Loop) unheardOf(e cluster.Event) cluster.Event {
	n, ok := e.New.(*cluster.Node)
	if !ok || n.Unheard == l.unheard[n.Name] {
		return e
	}
	told := *n
	told.Unheard = l.unheard[n.Name]
	e.New = &told
	return e
}

// recallSilence has those gateways begin as silent that the last master had
// taken for dead (Recall). Otherwise they would be ways out for as long as it
// takes to find them dead again. One that lives is heard within seconds. It is
// for the beginning of the first full pass, which looks at all owners anyway.
func (l *Loop) recallSilence() {
	if l.Life == nil || l.recalled {
		return
	}
	l.recalled = true
	silent := Recall(l.State, l.session)
	if len(silent) == 0 {
		return
	}
	l.Life.Presume(silent)
	l.unheard = maps.Clone(l.unheard) // what Life says besides is news to takeLife
	if l.unheard == nil {
		l.unheard = map[string]bool{}
	}
	for _, name := range silent {
		l.unheard[name] = true
		l.Log.Warn("gateway is not in service", "node", name, "reason", "it was not when the last master wrote")
	}
	l.countGateways()
}

// Recall has gateways be unheard of in s that were out of service when a master
// wrote last, for a reason that nobody tells now: their routers are there, the
// cluster router's routes to them are not. It lists them, sorted. When that is so
// of all, or of one that was set up by hand and has no Lease, it says nothing.
func Recall(s *cluster.State, session *ovsdb.Session) []string {
	view := session.View()
	var silent []string
	gateways := s.Gateways()
	for _, name := range gateways {
		router, leaves := false, false
		for _, ref := range view.Owned(nb.Owner{Kind: names.KindGateway, Name: name}) {
			switch m := view.Row(ref).(type) {
			case *nbdb.LogicalRouter:
				router = true
			case *nbdb.LogicalRouterStaticRoute:
				role := m.ExternalIDs[names.RoleKey]
				leaves = leaves || role == names.FamilyRole(names.RoleLeave, names.IPv4) || role == names.FamilyRole(names.RoleLeave, names.IPv6)
			}
		}
		if n := s.Nodes[name]; router && !leaves && n.Outage() == "" && !n.ByHand {
			silent = append(silent, name)
		}
	}
	if len(silent) == len(gateways) {
		return nil
	}
	for _, name := range silent {
		n := *s.Nodes[name]
		n.Unheard = true
		s.Apply(cluster.Event{Ref: n.Ref(), New: &n})
	}
	return silent
}
