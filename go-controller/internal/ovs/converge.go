package ovs

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/vswitchdb"
)

// Change is one difference, printed as a line with +, - or ~.
type Change struct {
	Kind string // "external_ids", "bridge", "port"
	Text string
	ops  []ovsdb.Operation
}

// String is the change as a line.
func (c Change) String() string { return c.Text }

// SystemID is the chassis name that the database has, "" when it has none.
func (d *DB) SystemID() (string, error) { return d.ExternalID(names.OVSSystemID) }

// ExternalID is one key of the Open_vSwitch row, "" when it is absent.
func (d *DB) ExternalID(key string) (string, error) {
	root, err := d.root()
	if err != nil {
		return "", err
	}
	return root.ExternalIDs[key], nil
}

// Converge compares the database with want and sends what differs as one
// transaction. It tells what it changed.
func (d *DB) Converge(ctx context.Context, want hostplan.OVS) ([]Change, error) {
	changes, err := d.diff(want)
	if err != nil {
		return nil, err
	}
	var ops []ovsdb.Operation
	for _, c := range changes {
		ops = append(ops, c.ops...)
	}
	if err := d.transact(ctx, ops); err != nil {
		return nil, err
	}
	return changes, nil
}

func (d *DB) diff(want hostplan.OVS) ([]Change, error) {
	root, err := d.root()
	if err != nil {
		return nil, err
	}
	ids := maps.Clone(want.Defaults)
	maps.DeleteFunc(ids, func(k, _ string) bool { return root.ExternalIDs[k] != "" })
	if ids == nil {
		ids = map[string]string{}
	}
	maps.Copy(ids, want.ExternalIDs)
	changes, err := d.diffExternalIDs(root, ids)
	if err != nil {
		return nil, err
	}
	bridgeRefs := map[string]string{}
	for _, b := range want.Bridges {
		c, ref, err := d.diffBridge(root, b)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", b, err)
		}
		bridgeRefs[b.Name] = ref
		changes = append(changes, c...)
	}
	for _, p := range want.Ports {
		ref := bridgeRefs[p.Bridge]
		if b, ok := d.bridge(p.Bridge); ok {
			ref = b.UUID
		}
		if ref == "" {
			return nil, fmt.Errorf("comparing %s: there is no bridge %s", p, p.Bridge)
		}
		c, err := d.diffPort(ref, p)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", p, err)
		}
		changes = append(changes, c...)
	}
	return changes, nil
}

// mapDiff is what turns the wanted keys of have into want: first the keys to
// delete (changed ones too: a mutate inserts only keys that are not there, RFC
// 7047 section 5.1), then the pairs to insert. "" means absent.
func mapDiff(have, want map[string]string) (del []string, ins map[string]string, lines []string) {
	ins = map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		v := want[k]
		old, there := have[k]
		switch {
		case there && v == "":
			lines = append(lines, fmt.Sprintf("- external_ids:%s=%s", k, old))
		case !there && v != "":
			lines = append(lines, fmt.Sprintf("+ external_ids:%s=%s", k, v))
		case there && old != v:
			lines = append(lines, fmt.Sprintf("~ external_ids:%s=%s (was: %s)", k, v, old))
		default:
			continue
		}
		if there {
			del = append(del, k)
		}
		if v != "" {
			ins[k] = v
		}
	}
	return del, ins, lines
}

// mapMutations are the mutations of a map column by mapDiff's answer.
func mapMutations(field any, del []string, ins map[string]string) (out []model.Mutation) {
	if len(del) > 0 {
		out = append(out, model.Mutation{Field: field, Mutator: ovsdb.MutateOperationDelete, Value: del})
	}
	if len(ins) > 0 {
		out = append(out, model.Mutation{Field: field, Mutator: ovsdb.MutateOperationInsert, Value: ins})
	}
	return out
}

func (d *DB) diffExternalIDs(root *vswitchdb.OpenvSwitch, want map[string]string) ([]Change, error) {
	del, ins, lines := mapDiff(root.ExternalIDs, want)
	if len(lines) == 0 {
		return nil, nil
	}
	row := &vswitchdb.OpenvSwitch{UUID: root.UUID}
	ops, err := d.client.Where(row).Mutate(row, mapMutations(&row.ExternalIDs, del, ins)...)
	if err != nil {
		return nil, fmt.Errorf("building the change of external_ids: %w", err)
	}
	var out []Change
	for i, l := range lines {
		c := Change{Kind: "external_ids", Text: l}
		if i == 0 {
			c.ops = ops
		}
		out = append(out, c)
	}
	return out, nil
}

// diffBridge tells also by which UUID, real or named, the bridge goes in this
// transaction.
func (d *DB) diffBridge(root *vswitchdb.OpenvSwitch, want hostplan.Bridge) ([]Change, string, error) {
	have, ok := d.bridge(want.Name)
	if !ok {
		c, ref, err := d.createBridge(root, want)
		return c, ref, err
	}
	is := hostplan.Bridge{Name: have.Name, FailMode: value(have.FailMode), DatapathType: have.DatapathType}
	same := is
	if same.DatapathType == "" {
		same.DatapathType = "system" // ovs-vswitchd.conf.db(5): the empty string means system
	}
	if same == want {
		return nil, have.UUID, nil
	}
	row := &vswitchdb.Bridge{UUID: have.UUID, FailMode: &want.FailMode, DatapathType: want.DatapathType}
	ops, err := d.client.Where(row).Update(row, &row.FailMode, &row.DatapathType)
	return []Change{{"bridge", fmt.Sprintf("~ %s (was: %s)", want, is), ops}}, have.UUID, err
}

// createBridge makes the bridge with its local port, as `ovs-vsctl add-br`.
func (d *DB) createBridge(root *vswitchdb.OpenvSwitch, want hostplan.Bridge) ([]Change, string, error) {
	var ops operations
	iface := &vswitchdb.Interface{UUID: "bridge_iface", Name: want.Name, Type: "internal"}
	port := &vswitchdb.Port{UUID: "bridge_port", Name: want.Name, Interfaces: []string{iface.UUID}}
	bridge := &vswitchdb.Bridge{
		UUID: "bridge_" + rowName(want.Name), Name: want.Name, Ports: []string{port.UUID},
		FailMode: &want.FailMode, DatapathType: want.DatapathType,
	}
	ops.add(d.client.Create(iface))
	ops.add(d.client.Create(port))
	ops.add(d.client.Create(bridge))
	row := &vswitchdb.OpenvSwitch{UUID: root.UUID}
	ops.add(d.client.Where(row).Mutate(row, model.Mutation{
		Field: &row.Bridges, Mutator: ovsdb.MutateOperationInsert, Value: []string{bridge.UUID},
	}))
	return []Change{{"bridge", "+ " + want.String(), ops.list}}, bridge.UUID, ops.err
}

// rowName makes an <id> of RFC 7047 section 3.1 of a name: a named UUID may
// have letters, digits and underscores only.
func rowName(name string) string {
	out := []byte(name)
	for i, c := range out {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			out[i] = '_'
		}
	}
	return string(out)
}

func (d *DB) diffPort(bridgeRef string, want hostplan.Port) ([]Change, error) {
	iface, ok := d.iface(want.Name)
	port, okPort := d.port(want.Name)
	if !ok || !okPort {
		ops, err := d.createPort(bridgeRef, want)
		return []Change{{"port", "+ " + want.String(), ops}}, err
	}
	ops, err := d.movePort(port, bridgeRef)
	moved := len(ops) > 0
	del, ins, lines := mapDiff(iface.ExternalIDs, want.ExternalIDs)
	row := &vswitchdb.Interface{UUID: iface.UUID}
	if len(lines) > 0 {
		o, e := d.client.Where(row).Mutate(row, mapMutations(&row.ExternalIDs, del, ins)...)
		ops, err = append(ops, o...), firstError(err, e)
	}
	columns := iface.Type != want.Type || value(iface.MAC) != want.MAC || value(iface.MTURequest) != want.MTU
	if columns {
		row.Type, row.MAC, row.MTURequest = want.Type, optional(want.MAC), optional(want.MTU)
		o, e := d.client.Where(row).Update(row, &row.Type, &row.MAC, &row.MTURequest)
		ops, err = append(ops, o...), firstError(err, e)
	}
	if !moved && !columns && len(lines) == 0 {
		return nil, nil
	}
	was := hostplan.Port{
		Bridge: want.Bridge, Name: iface.Name, Type: iface.Type, MAC: value(iface.MAC), MTU: value(iface.MTURequest),
		ExternalIDs: iface.ExternalIDs,
	}
	if moved {
		was.Bridge = "another bridge"
	}
	return []Change{{"port", fmt.Sprintf("~ %s (was: %s)", want, was), ops}}, err
}

// createPort makes the port and its interface.
func (d *DB) createPort(bridgeRef string, want hostplan.Port) ([]ovsdb.Operation, error) {
	var ops operations
	iface := &vswitchdb.Interface{
		UUID: "iface_" + rowName(want.Name), Name: want.Name, Type: want.Type,
		MAC: optional(want.MAC), MTURequest: optional(want.MTU), ExternalIDs: want.ExternalIDs,
	}
	port := &vswitchdb.Port{UUID: "port_" + rowName(want.Name), Name: want.Name, Interfaces: []string{iface.UUID}}
	ops.add(d.client.Create(iface))
	ops.add(d.client.Create(port))
	ops.add(d.bridgePorts(bridgeRef, ovsdb.MutateOperationInsert, port.UUID))
	return ops.list, ops.err
}

// movePort puts a port that hangs on other bridges onto this one.
func (d *DB) movePort(port *vswitchdb.Port, bridgeRef string) ([]ovsdb.Operation, error) {
	var ops operations
	here := false
	for _, r := range d.rows(vswitchdb.BridgeTable) {
		b := r.(*vswitchdb.Bridge)
		switch {
		case !slices.Contains(b.Ports, port.UUID):
		case b.UUID == bridgeRef:
			here = true
		default:
			ops.add(d.bridgePorts(b.UUID, ovsdb.MutateOperationDelete, port.UUID))
		}
	}
	if !here {
		ops.add(d.bridgePorts(bridgeRef, ovsdb.MutateOperationInsert, port.UUID))
	}
	return ops.list, ops.err
}

func (d *DB) bridgePorts(bridgeRef string, how ovsdb.Mutator, ports ...string) ([]ovsdb.Operation, error) {
	row := &vswitchdb.Bridge{UUID: bridgeRef}
	return d.client.Where(row).Mutate(row, model.Mutation{Field: &row.Ports, Mutator: how, Value: ports})
}

func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
