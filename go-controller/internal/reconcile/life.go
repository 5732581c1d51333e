package reconcile

import (
	"maps"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
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

// recallSilence has those gateways begin as silent that were out of service when
// the last master wrote, for a reason that nobody tells now: their routers are
// there, their routes are not. Otherwise they would be ways out for as long as it
// takes to find them dead again. One that lives is heard within seconds. It is
// for the beginning of the first full pass, which looks at all owners anyway.
func (l *Loop) recallSilence() {
	if l.Life == nil || l.recalled {
		return
	}
	l.recalled = true
	var silent []string
	gateways := l.State.Gateways()
	for _, name := range gateways {
		n := l.State.Nodes[name]
		there := func(table, role string) bool {
			return l.session.View().Row(nb.Ref{Table: table, UUID: names.RowUUID(table, names.KindGateway, name, role, n.UID)}) != nil
		}
		leaves := false
		for _, family := range []names.Family{names.IPv4, names.IPv6} {
			leaves = leaves || there(nbdb.LogicalRouterStaticRouteTable, names.FamilyRole(names.RoleLeave, family))
		}
		if n.Outage() == "" && !leaves && there(nbdb.LogicalRouterTable, names.RoleRouter) {
			silent = append(silent, name)
		}
	}
	if len(silent) == 0 || len(silent) == len(gateways) {
		return
	}
	l.Life.Presume(silent)
	l.unheard = l.Life.Silent()
	for _, name := range silent {
		l.State.Apply(l.unheardOf(cluster.Event{Ref: l.State.Nodes[name].Ref(), New: l.State.Nodes[name]}))
		l.Log.Warn("gateway is not in service", "node", name, "reason", "it was not when the last master wrote")
	}
	l.countGateways()
}
