package byhand

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/nbrecord"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// edit changes this machine's node. held is the subnets that it has.
type edit func(n *cluster.Node, held []netip.Prefix) error

// north applies a change of this machine's node to the Northbound database, and to the
// Node's annotations if there is a Node. With first it makes the cluster's own rows,
// too.
func (s Setup) north(ctx context.Context, first bool, change edit) error {
	return s.inNorthbound(ctx, func(n *northbound) error {
		if n.core.State.Config.ServiceCIDRs = ipnet.Union(n.Cluster.ServiceCIDRs, n.kube.ranges); !first {
			n.core.State.Config.ServiceCIDRs = n.serviceRanges()
		}
		node, patch, err := n.change(change)
		if err != nil {
			return err
		}
		owners := n.owners(first)
		if _, err := n.plans(owners); err != nil {
			return err // before anything is written
		}
		if !node.ByHand && len(patch.Annotations)+len(patch.Remove) > 0 {
			if err := n.annotate(ctx, patch); err != nil {
				return err
			}
		}
		return n.carryOut(ctx, owners)
	})
}

// northUndo removes this machine's node from the Northbound database. With last it
// removes the cluster's own rows, too.
func (s Setup) northUndo(ctx context.Context, last bool) error {
	return s.inNorthbound(ctx, func(n *northbound) error {
		have := n.core.State.Nodes[s.Node.Name]
		if have != nil && !have.ByHand {
			fmt.Fprintf(s.Out, "Node %s is one of Kubernetes: its switch stays until the Node is deleted.\n", s.Node.Name)
			return nil
		}
		if have != nil && have.Gateway != nil {
			return fmt.Errorf("node %s is a gateway: run gateway-init --undo first", s.Node.Name)
		}
		if last {
			if err := n.alone(); err != nil {
				return err
			}
		}
		n.core.State.Config.ServiceCIDRs = n.serviceRanges()
		n.apply(s.Node.Name, nil)
		n.gone = last
		return n.carryOut(ctx, n.owners(last))
	})
}

// inNorthbound calls do with what the Northbound database and, if there is one,
// the API server know.
func (s Setup) inNorthbound(ctx context.Context, do func(*northbound) error) error {
	if s.kube == nil {
		s.kube = &kube{}
	}
	if err := s.askKube(ctx); err != nil {
		return err
	}
	schema := nb.NewSchema()
	s.Cluster.Claims.Unchecked = true // who runs the command may write the database
	return ovsdb.With(ctx, s.NB, schema, slog.New(slog.DiscardHandler), func(session *ovsdb.Session) error {
		n := &northbound{Setup: s, session: session, strangers: map[string]bool{}, others: map[nb.Owner]bool{}}
		if err := n.read(schema); err != nil {
			return err
		}
		return do(n)
	})
}

// northbound is the Northbound side of one command.
type northbound struct {
	Setup
	core      *core.Core
	session   *ovsdb.Session
	before    map[string]string // annotations of this machine's Node as they are
	strangers map[string]bool   // nodes of which only the database tells: their rows are the master's
	others    map[nb.Owner]bool // nodes, gateways and zones whose rows change with this machine's
	gone      bool              // the cluster's own rows are not wanted
}

// read puts all known nodes into the state.
func (n *northbound) read(schema *nb.Schema) error {
	if err := n.recall(); err != nil {
		return err
	}
	n.core = core.New(n.Cluster, schema, all.Translators(schema))
	if err := nbrecord.Router(n.core.State, n.session); err != nil {
		return err
	}
	byHand, problems := nbrecord.Nodes(n.session)
	var events []cluster.Event
	for _, node := range n.kube.nodes {
		if node.Name == n.Node.Name {
			n.before = node.Annotations()
		}
		events = append(events, cluster.Event{Ref: node.Ref(), New: node})
	}
	for _, node := range byHand {
		r := &cluster.NodeRecord{Node: node}
		events = append(events, cluster.Event{Ref: r.Ref(), New: r})
	}
	n.core.Step(events)
	for _, node := range n.unreported() {
		n.strangers[node.Name] = true
		n.core.Step([]cluster.Event{{Ref: node.Ref(), New: node}})
	}
	n.core.Advance(time.Now().Unix())
	n.core.Ledger().Keep(n.core.State, nbrecord.Records{}.Freed(n.core.State, n.session))
	for _, p := range append(problems, n.core.Start().Problems...) {
		fmt.Fprintln(n.Out, "warning:", p)
	}
	return n.foreign()
}

// foreign is the error that this machine's switch belongs to a Node of Kubernetes,
// while the API server does not answer.
func (n *northbound) foreign() error {
	name, uid := n.Node.Name, ""
	if have := n.core.State.Nodes[name]; have != nil {
		uid = have.UID
	}
	view := n.session.View()
	for _, ref := range view.Owned(nb.Owner{Kind: names.KindNode, Name: name}) {
		is := func(uid string) bool {
			return names.IsUUIDOf(names.NodeRow(ref.Table, name, names.RoleSwitch, uid), ref.UUID)
		}
		if ref.Table == nbdb.LogicalSwitchTable && !is(uid) && !is("") { // "": of before the Node came
			why := errors.New("and no API server is known that has this Node: give --k8s-apiserver, " +
				"or set external_ids:k8s-api-server of the Open_vSwitch row")
			if n.kube.failure != nil {
				why = fmt.Errorf("whose API server does not answer: %w", n.kube.failure)
			}
			return fmt.Errorf("logical switch %s belongs to the Node %s of a Kubernetes cluster, %w", name, name, why)
		}
	}
	return nil
}

// apply replaces this machine's node in the state, or removes it when node is nil. It
// returns what is wrong with it.
func (n *northbound) apply(name string, node *cluster.Node) []cluster.Problem {
	e := cluster.Event{Ref: cluster.Ref{Kind: cluster.KindNode, Name: cluster.Name{Name: name}}}
	if node != nil {
		e.New = node
	}
	res := n.core.Step([]cluster.Event{e})
	for _, o := range res.Dirty {
		if o.Kind == names.KindNode || o.Kind == names.KindGateway || o.Kind == names.KindZone {
			n.others[o] = true
		}
	}
	return res.Problems
}

// change applies an edit to this machine's node, and what it is granted. The patch is
// for its Node.
func (n *northbound) change(do edit) (*cluster.Node, allocate.Patch, error) {
	name := n.Node.Name
	node := cluster.Node{Name: name, ByHand: true}
	if have := n.core.State.Nodes[name]; have != nil {
		node = *have
	}
	before := n.before
	if node.ByHand {
		before = node.Annotations()
	}
	if err := do(&node, n.core.State.NodeSubnets[name]); err != nil {
		return nil, allocate.Patch{}, err
	}
	claimed, err := annotation.ParseNodeSubnets(node.Annotated)
	if err == nil {
		err = n.core.Ledger().Check(name, claimed)
	}
	if err != nil {
		return nil, allocate.Patch{}, fmt.Errorf("setting up node %s: subnets %w", name, err)
	}
	var errs []error
	for _, p := range n.apply(name, &node) {
		if p.Ref == node.Ref() {
			errs = append(errs, errors.New(p.Message))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, allocate.Patch{}, fmt.Errorf("setting up node %s: %w", name, err)
	}
	granted := node
	granted.JoinAnnotated = annotation.MarshalGatewayJoinAddrs(n.core.State.JoinAddrs[name])
	n.apply(name, &granted)
	patch := allocate.Patch{Ref: granted.Ref(), UID: granted.UID, Found: granted.Found, Annotations: map[string]string{}}
	after := granted.Annotations()
	for k, v := range after {
		if before[k] != v {
			patch.Annotations[k] = v
		}
	}
	for _, k := range []string{annotation.L3GatewayConfig, annotation.GatewayJoinAddrs} {
		if _, had := before[k]; had && after[k] == "" {
			patch.Remove = append(patch.Remove, k)
		}
	}
	return &granted, patch, nil
}

// owners are the owners of the rows that this command writes. whole includes the
// cluster's own.
func (n *northbound) owners(whole bool) []nb.Owner {
	out := []nb.Owner{{Kind: names.KindNode, Name: n.Node.Name}, {Kind: names.KindGateway, Name: n.Node.Name}}
	for o := range n.others {
		if o.Kind == names.KindZone || !n.strangers[o.Name] {
			out = append(out, o)
		}
	}
	for _, o := range slices.Clone(out) {
		node := n.core.State.Nodes[o.Name]
		if o.Kind == names.KindNode && node != nil && index.ZonesOf(n.core.State).Has(node.Zone) {
			// The node's switch is to carry the group of its zone.
			out = append(out, nb.Owner{Kind: names.KindZone, Name: names.ZoneOwner(node.Zone)})
		}
	}
	if whole {
		out = append(out, nb.Owner{Kind: names.KindCluster, Name: names.ClusterOwner})
	}
	return out
}

// sortedOwners is the owners in the database, sorted.
func (n *northbound) sortedOwners() []nb.Owner {
	out := n.session.Owners()
	slices.SortFunc(out, nb.Owner.Compare)
	return out
}

// alone is the error that other nodes use the cluster's rows.
func (n *northbound) alone() error {
	for _, o := range n.sortedOwners() {
		if o.Kind != names.KindCluster && o.Name != n.Node.Name {
			return fmt.Errorf("%s is still there: undo the other nodes first, this one last", o)
		}
	}
	return nil
}

// plans is what the owners want changed.
func (n *northbound) plans(owners []nb.Owner) ([]nb.Plan, error) {
	b := n.core.Plan(n.session.View(), owners, func(o nb.Owner) bool { return n.gone && o.Kind == names.KindCluster })
	for _, f := range b.Failed {
		if _, missing := f.MissingParent(); missing {
			return nil, errors.New("the Northbound database has no cluster router: run master-init first, " +
				"on the machine that is to be the master")
		}
	}
	return b.Plans, b.Err()
}

// attempts is how often a transaction is planned anew when somebody else was
// faster: a master that has read the Node's annotations makes the same rows. On a
// busy machine seconds may pass until its rows are seen here.
const attempts = 20

// carryOut plans the owners, sends the plans as one transaction and prints what
// changed.
func (n *northbound) carryOut(ctx context.Context, owners []nb.Owner) error {
	for attempt := 1; ; attempt++ {
		plans, err := n.plans(owners)
		if err != nil {
			return err
		}
		var out ovsdb.Outcome
		if !n.DryRun && len(plans) > 0 {
			out, err = n.session.Transact(ctx, plans)
		}
		switch {
		case err == nil && len(out.Lost) == 0:
			return n.print(plans)
		case err != nil && (!ovsdb.IsRejected(err) || attempt == attempts):
			return fmt.Errorf("writing to the Northbound database: %w", err)
		case attempt == attempts:
			return fmt.Errorf("somebody keeps changing the rows of %s: run the command again", out.Lost[0])
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("writing to the Northbound database: %w", errors.Join(err, ctx.Err()))
		case <-time.After(retryAfter): // the notification of what the other wrote comes meanwhile
		}
	}
}

// retryAfter is how long somebody else's change may take to be seen here.
const retryAfter = 200 * time.Millisecond

func (n *northbound) print(plans []nb.Plan) error {
	for _, p := range plans {
		if !n.DryRun {
			p = brief(p)
		}
		if _, err := p.WriteTo(n.Out); err != nil {
			return fmt.Errorf("printing the plan: %w", err)
		}
	}
	return nil
}

// brief is a plan that prints each inserted row as one line.
func brief(p nb.Plan) nb.Plan {
	out := nb.Plan{Owner: p.Owner, Rows: slices.Clone(p.Rows)}
	fresh := map[string]bool{}
	for i := range out.Rows {
		fresh[out.Rows[i].UUID] = out.Rows[i].Verb != nb.Update
		if out.Rows[i].Verb == nb.Insert {
			out.Rows[i].Columns = nil
		}
	}
	for _, m := range p.Members { // where a row is listed goes without saying when it comes or goes
		if !fresh[m.UUID] {
			out.Members = append(out.Members, m)
		}
	}
	return out
}
