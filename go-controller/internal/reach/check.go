package reach

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/explain"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// Cluster is a cluster that is asked about.
type Cluster struct {
	*core.Core
	wanted   *verdict.Evaluator
	byAddr   map[netip.Addr]End
	database *database
	logged   map[string]Logged // by the name of an ACL; see loggedAs
}

// New is a cluster with the rows that it wants.
func New(c *core.Core, wanted verdict.Rows) *Cluster {
	out := &Cluster{Core: c, wanted: verdict.New(wanted), logged: map[string]Logged{}}
	out.byAddr = out.addresses()
	return out
}

// database is a database that the wanted rows are compared with.
type database struct {
	view nb.View
	rows *verdict.Evaluator
}

// Compare makes answers say how the rows are in a database, too.
func (c *Cluster) Compare(v nb.View, rows verdict.Rows) { c.database = &database{v, verdict.New(rows)} }

// Row is an ACL that decides.
type Row struct {
	UUID  string        `json:"uuid"`
	Role  string        `json:"role"`
	State explain.State `json:"state,omitempty"` // in the database; empty without one

	key nb.Key
}

// compare takes the state and the UUID of a row from the database.
func (r *Row) compare(c *Cluster) error {
	have, err := explain.RowIn(c.Core, c.database.view, r.key)
	if err != nil {
		return err
	}
	r.State, r.UUID = have.State, cmp.Or(have.UUID, r.UUID) // nobody wants a row without one
	return nil
}

// Result is the answer to a question.
type Result string

// The results.
const (
	Allowed Result = "allowed"
	Denied  Result = "denied"
	Partly  Result = "partly allowed" // some of the connections that the question is about
)

// Check is the answer to a question.
type Check struct {
	From        string       `json:"from"`
	To          string       `json:"to"`
	Result      Result       `json:"result"`
	Notes       []string     `json:"notes"`
	Connections []Connection `json:"connections"`
}

// Connection is the answer about one address of each side.
type Connection struct {
	From    End      `json:"from"`
	Client  string   `json:"client,omitempty"` // who connects, when From forwards for it
	To      End      `json:"to"`
	Service string   `json:"service,omitempty"` // by which the client gets to To
	Answers []Answer `json:"answers"`
}

// Answer is the answer about ports for which the same rules decide.
type Answer struct {
	Ports    PortSet  `json:"ports"`
	Allowed  bool     `json:"allowed"`
	Egress   Decision `json:"egress"`
	Ingress  Decision `json:"ingress"`
	Database string   `json:"database,omitempty"` // what the database's own rows do, when that is something else
}

// Check answers a question.
func (c *Cluster) Check(q Question) (*Check, error) {
	ways, notes, err := c.connections(q)
	if err != nil {
		return nil, err
	}
	out := &Check{From: q.From.String(), To: q.server(), Notes: append([]string{}, notes...)}
	for _, w := range ways {
		answered, err := c.answer(w)
		if err != nil {
			return nil, fmt.Errorf("asking about %s to %s: %w", w.from, w.to, err)
		}
		out.Connections = append(out.Connections, answered)
		for _, a := range answered.Answers {
			switch is := a.word(); out.Result {
			case "":
				out.Result = is
			case is:
			default:
				out.Result = Partly
			}
		}
	}
	out.Notes = append(out.Notes, c.idleRules(out.Connections)...)
	return out, nil
}

// answer answers about one way to connect.
func (c *Cluster) answer(w connection) (Connection, error) {
	out := Connection{From: w.from, Client: w.client, To: w.to, Service: w.via}
	if w.refused != "" {
		refused := Decision{Reason: w.refused}
		out.Answers = []Answer{{Ports: PortSet{w.asked}, Egress: refused, Ingress: refused}}
		return out, nil
	}
	for _, asked := range w.asked {
		parts, err := spans(c.wanted, w.packet(asked), asked)
		if err != nil {
			return out, err
		}
		for _, s := range parts {
			a, err := c.ask(w, s)
			if err != nil {
				return out, err
			}
			out.merge(a)
		}
	}
	slices.SortStableFunc(out.Answers, func(a, b Answer) int {
		return cmp.Or(cmp.Compare(a.Ports.size(), b.Ports.size()), compareSets(a.Ports, b.Ports))
	})
	return out, nil
}

// merge adds an answer to those that say the same.
func (c *Connection) merge(a Answer) {
	i := slices.IndexFunc(c.Answers, func(b Answer) bool {
		return a.Allowed == b.Allowed && a.Egress.says(b.Egress) && a.Ingress.says(b.Ingress) && a.Database == b.Database
	})
	if i < 0 {
		c.Answers = append(c.Answers, a)
		return
	}
	b := &c.Answers[i]
	for _, s := range a.Ports.spans {
		b.Ports.add(s)
	}
	b.Egress.Rows, b.Ingress.Rows = union(b.Egress.Rows, a.Egress.Rows), union(b.Ingress.Rows, a.Ingress.Rows)
}

func union(rows, more []Row) []Row {
	for _, r := range more {
		if !slices.Contains(rows, r) {
			rows = append(rows, r)
		}
	}
	return rows
}

// ask answers about a span of ports that no ACL tells apart.
func (c *Cluster) ask(w connection, s span) (Answer, error) {
	if w.itself() && !w.service.IsValid() {
		within := Decision{Allowed: true, Reason: "a pod's packets to itself do not leave it"}
		return Answer{Ports: PortSet{[]span{s}}, Allowed: true, Egress: within, Ingress: within}, nil
	}
	out, err := c.evaluate(c.wanted, w, s)
	if err != nil || c.database == nil {
		return out, err
	}
	for _, d := range []*Decision{&out.Egress, &out.Ingress} {
		for i := range d.Rows {
			if err := d.Rows[i].compare(c); err != nil {
				return out, err
			}
		}
	}
	have, err := c.evaluate(c.database.rows, w, s)
	switch {
	case err != nil:
		out.Database = fmt.Sprintf("the database's own rows do not say: %v", err)
	case have.Allowed != out.Allowed:
		out.Database = "the database's own rows do otherwise: " + have.String()
	}
	return out, nil
}

// evaluate asks the rows of a database.
func (c *Cluster) evaluate(e *verdict.Evaluator, w connection, s span) (Answer, error) {
	if w.relay != nil {
		return c.relayed(e, w, s)
	}
	steps, err := steps(e, w, w.packet(s))
	if err != nil {
		return Answer{}, err
	}
	first := divide(w, steps)
	out := Answer{Ports: PortSet{[]span{s}}, Egress: c.decision(egress, w.from, w.to, steps[:first]),
		Ingress: c.decision(ingress, w.to, w.from, steps[first:])}
	if w.itself() && out.Egress.Allowed { // ACLs of egress do not see such packets
		out.Egress.Reason = itself
	}
	out.Allowed = out.Egress.Allowed && out.Ingress.Allowed
	return out, nil
}

// divide is the first of the steps that are about the server.
func divide(w connection, steps []verdict.Step) int {
	switch {
	case w.from.port == "":
		return 0
	case w.to.port == "":
		return len(steps)
	case steps[0].Switch == steps[len(steps)-1].Switch:
		return len(steps) - 1
	}
	return len(steps) / 2 // each switch has all stages
}

// steps is the answers of the stages on the way of a packet.
func steps(e *verdict.Evaluator, w connection, p verdict.Packet) ([]verdict.Step, error) {
	if !w.itself() {
		return e.Steps(p, w.service)
	}
	// A pod that reaches itself through a service: the packet comes back from load balancing with another source.
	back := p
	back.Src = netip.MustParseAddr(names.HairpinSNAT4)
	if p.Dst.Is6() {
		back.Src = netip.MustParseAddr(names.HairpinSNAT6)
	}
	p.Dst, p.DstPort = w.service.Addr(), w.service.Port()
	node := w.from.logicalSwitch()
	out, err := e.Stage(verdict.FromLport, node, p)
	if err != nil {
		return nil, err
	}
	in, err := e.Stage(verdict.ToLport, node, back)
	return []verdict.Step{out, in}, err
}
