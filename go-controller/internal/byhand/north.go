package byhand

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/assign"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/kubeio"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/reconcile"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// edit changes this machine's node. held is the subnets that it has.
type edit func(n *cluster.Node, held []netip.Prefix) error

// north applies a change of this machine's node to the Northbound database, and to the
// Node's annotations if there is a Node. With first it makes the cluster's own rows,
// too.
func (s Setup) north(ctx context.Context, first bool, change edit) error {
	return s.inNorthbound(ctx, func(n *northbound, clients *kubeio.Clients) error {
		if n.state.Config.ServiceCIDRs = ipnet.Union(n.Cluster.ServiceCIDRs, n.kube.ranges); !first {
			n.state.Config.ServiceCIDRs = n.serviceRanges()
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
			if err := n.annotate(ctx, clients, patch); err != nil {
				return err
			}
		}
		return n.carryOut(ctx, owners)
	})
}

// northUndo removes this machine's node from the Northbound database. With last it
// removes the cluster's own rows, too.
func (s Setup) northUndo(ctx context.Context, last bool) error {
	return s.inNorthbound(ctx, func(n *northbound, _ *kubeio.Clients) error {
		have := n.state.Nodes[s.Node.Name]
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
		n.state.Config.ServiceCIDRs = n.serviceRanges()
		n.apply(s.Node.Name, nil)
		n.gone = last
		return n.carryOut(ctx, n.owners(last))
	})
}

// inNorthbound connects to the Northbound database, asks the API server if there is
// one, and calls do.
func (s Setup) inNorthbound(ctx context.Context, do func(*northbound, *kubeio.Clients) error) error {
	if s.kube == nil {
		s.kube = &kube{}
	}
	if err := s.askKube(ctx); err != nil {
		return err
	}
	schema := nb.NewSchema()
	return ovsdb.With(ctx, s.NB, schema, slog.New(slog.DiscardHandler), func(session *ovsdb.Session) error {
		n := &northbound{Setup: s, schema: schema, session: session, translators: all.Translators(schema),
			others: map[nb.Owner]bool{}}
		if err := n.read(s.kube.nodes); err != nil {
			return err
		}
		return do(n, s.kube.clients)
	})
}

// northbound is the Northbound side of one command.
type northbound struct {
	Setup
	schema      *nb.Schema
	session     *ovsdb.Session
	translators translate.Set
	state       *cluster.State
	ledger      *assign.Ledger
	before      map[string]map[string]string // annotations of the Nodes as they are
	strangers   map[string]bool              // nodes of which only the database tells: their rows are the master's
	others      map[nb.Owner]bool            // nodes, gateways and zones whose rows change with this machine's
	gone        bool                         // the cluster's own rows are not wanted
}

// read puts all known nodes into the state.
func (n *northbound) read(nodes []*cluster.Node) error {
	if err := n.recall(); err != nil {
		return err
	}
	n.state, n.ledger = cluster.NewState(n.Cluster), assign.New(n.Cluster)
	if err := reconcile.Adopt(n.state, n.session); err != nil {
		return err
	}
	byHand, problems := reconcile.ByHand(n.session)
	var objects []cluster.Object
	n.before = map[string]map[string]string{}
	for _, node := range nodes {
		n.before[node.Name] = node.Annotations()
		objects = append(objects, node)
	}
	for _, node := range cluster.WithByHand(objects, byHand) {
		n.state.Apply(cluster.Event{Ref: node.Ref(), New: node})
	}
	n.strangers = map[string]bool{}
	for _, node := range n.unreported() {
		n.strangers[node.Name] = true
		n.state.Apply(cluster.Event{Ref: node.Ref(), New: node})
	}
	var changes []cluster.Change
	for _, node := range n.state.Nodes {
		changes = append(changes, cluster.Change{Ref: node.Ref(), New: node})
	}
	for _, p := range append(problems, n.ledger.Assign(n.state, changes).Problems...) {
		fmt.Fprintln(n.Out, "warning:", p)
	}
	return n.foreign()
}

// foreign is the error that this machine's switch belongs to a Node of Kubernetes,
// while the API server does not answer.
func (n *northbound) foreign() error {
	name, uid := n.Node.Name, ""
	if have := n.state.Nodes[name]; have != nil {
		uid = have.UID
	}
	view := n.session.View()
	for _, ref := range view.Owned(nb.Owner{Kind: names.KindNode, Name: name}) {
		byHand := ref.UUID == names.NodeRow(ref.Table, name, names.RoleSwitch, "") // of before the Node came
		if ref.Table == nbdb.LogicalSwitchTable && ref.UUID != names.NodeRow(ref.Table, name, names.RoleSwitch, uid) &&
			!byHand {
			return fmt.Errorf("logical switch %s belongs to the Node %s of a Kubernetes cluster, "+
				"whose API server is not known or does not answer: give --k8s-apiserver, "+
				"or set external_ids:k8s-api-server of the Open_vSwitch row", name, name)
		}
	}
	return nil
}

// apply replaces this machine's node in the state, or removes it when node is nil.
func (n *northbound) apply(name string, node *cluster.Node) assign.Result {
	e := cluster.Event{Ref: cluster.Ref{Kind: cluster.KindNode, Name: cluster.Name{Name: name}}}
	if node != nil {
		e.New = node
	}
	c, ok := n.state.Apply(e)
	if !ok {
		return assign.Result{}
	}
	res := n.ledger.Assign(n.state, []cluster.Change{c})
	for _, c := range append(res.Changes, c) {
		for _, o := range n.translators.Affected(n.state, c) {
			if o.Kind == names.KindNode || o.Kind == names.KindGateway || o.Kind == names.KindZone {
				n.others[o] = true
			}
		}
	}
	return res
}

// change applies an edit to this machine's node, and what it is granted. The patch is
// for its Node.
func (n *northbound) change(do edit) (*cluster.Node, assign.Patch, error) {
	name := n.Node.Name
	node := cluster.Node{Name: name, ByHand: true}
	if have := n.state.Nodes[name]; have != nil {
		node = *have
	}
	before := n.before[name]
	if node.ByHand {
		before = node.Annotations()
	}
	if err := do(&node, n.state.NodeSubnets[name]); err != nil {
		return nil, assign.Patch{}, err
	}
	if err := n.ledger.Check(name, node.Annotated); err != nil {
		return nil, assign.Patch{}, fmt.Errorf("setting up node %s: subnets %w", name, err)
	}
	var errs []error
	for _, p := range n.apply(name, &node).Problems {
		if p.Ref == node.Ref() {
			errs = append(errs, errors.New(p.Message))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, assign.Patch{}, fmt.Errorf("setting up node %s: %w", name, err)
	}
	granted := node
	granted.JoinAnnotated = n.state.JoinAddrs[name]
	n.apply(name, &granted)
	patch := assign.Patch{Ref: granted.Ref(), UID: granted.UID, Annotations: map[string]string{}}
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
		if node := n.state.Nodes[o.Name]; o.Kind == names.KindNode && node != nil && n.state.HasZone(node.Zone) {
			// The node's switch is to carry the group of its zone.
			out = append(out, nb.Owner{Kind: names.KindZone, Name: names.ZoneOwner(node.Zone)})
		}
	}
	if whole {
		out = append(out, nb.Owner{Kind: names.KindCluster, Name: names.ClusterOwner})
	}
	return out
}

// alone is the error that other nodes use the cluster's rows.
func (n *northbound) alone() error {
	for _, o := range n.session.Owners() {
		if o.Kind != names.KindCluster && o.Name != n.Node.Name {
			return fmt.Errorf("%s is still there: undo the other nodes first, this one last", o)
		}
	}
	return nil
}

func (n *northbound) plans(owners []nb.Owner) ([]nb.Plan, error) {
	slices.SortFunc(owners, nb.Owner.Compare)
	var plans []nb.Plan
	view, inserted := n.session.View(), nb.Scope{}
	for _, o := range slices.Compact(owners) {
		rows, err := n.translators.Rows(n.state, o)
		if err != nil {
			return nil, fmt.Errorf("translating %s: %w", o, err)
		}
		if n.gone && o.Kind == names.KindCluster {
			rows = nil
		}
		p, err := n.schema.Plan(view, o, rows, inserted)
		var missing *nb.MissingParentError
		if errors.As(err, &missing) {
			return nil, errors.New("the Northbound database has no cluster router: run master-init first, " +
				"on the machine that is to be the master")
		}
		if err != nil {
			return nil, err
		}
		if !p.Empty() {
			plans = append(plans, p)
		}
	}
	plans, _ = nb.Settled(plans)
	return plans, nil
}

// attempts is how often a transaction is planned anew when somebody else was faster. A
// master that has read the Node's annotations makes the same rows.
const attempts = 5

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
