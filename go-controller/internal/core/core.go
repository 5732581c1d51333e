package core

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Core is a cluster, what is granted in it, and the translators of its rows. It belongs to one goroutine.
type Core struct {
	State  *cluster.State
	Schema *nb.Schema

	ledger      *allocate.Ledger
	translators translate.Set
	started     bool
	down        map[string]bool          // nodes whose gateways the gateway monitor found down
	records     map[string]*cluster.Node // of nodes set up by hand, until their Node objects have adopted all
	reported    map[nb.Owner]string      // what was last reported about an owner
	statuses    map[cluster.Ref]*status  // of objects whose status a master writes
	changes     int                      // how often such an object has changed; no two changes have one number
}

// New is the core of an empty cluster. It has the networks besides the cluster's own.
func New(c config.Cluster, schema *nb.Schema, ts translate.Set, networks ...*cluster.Network) *Core {
	s := index.NewState(c, ts.Indexes()...)
	for _, n := range networks {
		s.AddNetwork(n)
	}
	return &Core{
		State: s, Schema: schema,
		ledger: allocate.New(s.Networks), translators: ts, down: map[string]bool{},
		records: map[string]*cluster.Node{}, reported: map[nb.Owner]string{},
		statuses: map[cluster.Ref]*status{},
	}
}

// Result is what events led to.
type Result struct {
	Changes  []cluster.Change  // of objects and grants; the State contains them
	Patches  []allocate.Patch  // for the API server
	Problems []cluster.Problem // for the authors of objects
	Dirty    []nb.Owner        // owners whose rows may have changed; an owner may occur more than once
}

// Step applies events. Before Start it only records the objects: nothing may be granted while an object that is not
// known yet may hold it.
func (c *Core) Step(events []cluster.Event) Result {
	var out Result
	if len(events) > 0 {
		out.Changes = make([]cluster.Change, 0, len(events))
	}
	for _, e := range events {
		c.observe(e)
		for _, e := range c.merge(e, &out) {
			c.apply(e, &out)
		}
		for _, o := range c.State.Resolved(e.Ref) {
			c.apply(cluster.Event{Ref: o.Ref(), New: o}, &out)
		}
	}
	if c.started {
		for _, o := range c.State.Shared(out.Changes) {
			c.apply(cluster.Event{Ref: o.Ref(), New: o}, &out)
		}
	}
	if c.started && len(out.Changes) > 0 {
		c.follow(&out)
	}
	return out
}

// apply has the State say what an event does.
func (c *Core) apply(e cluster.Event, out *Result) {
	change, ok := c.State.Apply(e)
	if !ok { // it is judged as before
		out.Patches = append(out.Patches, c.condition(e.Ref)...)
		return
	}
	out.Changes = append(out.Changes, change)
	out.Patches = append(out.Patches, c.readiness(e.Ref)...)
	if s := c.statuses[e.Ref]; s != nil {
		c.changes++
		s.want, s.asked, s.change = nil, allocate.Status{}, c.changes // until what it says now is judged
	}
}

// Start grants what the known objects ask for. From then on, Step does so. The Changes are the objects as if they had
// just come, without the grants. No owner is named as dirty: all of Owners are.
func (c *Core) Start() Result {
	c.started = true
	for _, o := range c.State.AllShared() {
		c.State.Apply(cluster.Event{Ref: o.Ref(), New: o})
	}
	all := c.State.All()
	res := c.ledger.Update(c.State, all)
	for _, change := range all {
		res.Patches = append(res.Patches, c.readiness(change.Ref)...)
	}
	res.Patches = append(res.Patches, c.protections(all)...)
	return Result{Changes: all, Patches: res.Patches, Problems: res.Problems}
}

// Advance tells the time, in seconds since 1970: what was freed long enough ago may be given to those that wait for it.
func (c *Core) Advance(now int64) Result {
	var out Result
	if c.ledger.Advance(c.State, now) && c.started {
		c.follow(&out)
	}
	return out
}

// follow grants what the changes ask for, and names the owners that they concern.
func (c *Core) follow(out *Result) {
	res := c.ledger.Update(c.State, out.Changes)
	out.Changes = append(out.Changes, res.Changes...)
	out.Patches = append(out.Patches, res.Patches...)
	out.Problems = append(out.Problems, res.Problems...)
	out.Patches = append(out.Patches, c.protections(out.Changes)...)
	for _, change := range out.Changes {
		out.Dirty = append(out.Dirty, c.translators.Affected(c.State, change)...)
	}
}

// Owners lists every owner that wants rows, in order.
func (c *Core) Owners() []nb.Owner { return c.translators.Owners(c.State) }

// Rows is the rows that an owner wants, and what is reported to users about it.
func (c *Core) Rows(o nb.Owner) (translate.Rows, error) { return c.translators.Rows(c.State, o) }

// Ledger records who holds what.
func (c *Core) Ledger() *allocate.Ledger { return c.ledger }

// reserved is true for an address that a pod may have whose removal waits.
func (c *Core) reserved(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && c.ledger.Reserved(a)
}
