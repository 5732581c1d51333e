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
	Kind string // "external_ids", "bridge", "port", "flow"
	Text string
}

// String is the change as a line.
func (c Change) String() string { return c.Text }

// difference collects changes and the operations that make them.
type difference struct {
	changes []Change
	operations
}

func (d *difference) changed(kind, format string, args ...any) {
	d.changes = append(d.changes, Change{kind, fmt.Sprintf(format, args...)})
}

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
	diff, err := d.diff(want)
	if err != nil {
		return nil, err
	}
	if err := d.transact(ctx, diff.list); err != nil {
		return nil, err
	}
	return diff.changes, nil
}

// Preview lists what Converge would change, and changes nothing.
func (d *DB) Preview(want hostplan.OVS) ([]Change, error) {
	diff, err := d.diff(want)
	return diff.changes, err
}

func (d *DB) diff(want hostplan.OVS) (out difference, err error) {
	root, err := d.root()
	if err != nil {
		return out, err
	}
	ids := maps.Clone(want.Defaults)
	maps.DeleteFunc(ids, func(k, _ string) bool { return root.ExternalIDs[k] != "" })
	if ids == nil {
		ids = map[string]string{}
	}
	maps.Copy(ids, want.ExternalIDs)
	d.diffExternalIDs(&out, root, ids)
	d.diffKeys(&out, root, want.Keys)
	bridgeRefs := map[string]string{}
	for _, b := range want.Bridges {
		bridgeRefs[b.Name] = d.diffBridge(&out, b)
	}
	for _, p := range want.Ports {
		ref := bridgeRefs[p.Bridge]
		if b, ok := d.bridge(p.Bridge); ok {
			ref = b.UUID
		}
		if ref == "" {
			return out, fmt.Errorf("comparing %s: there is no bridge %s", p, p.Bridge)
		}
		d.diffPort(&out, ref, p)
	}
	if out.err != nil {
		return out, fmt.Errorf("building the changes of Open vSwitch: %w", out.err)
	}
	return out, nil
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
			lines = append(lines, "- external_ids:"+shown(k, old))
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

// shown is a key of external_ids with the value that is removed; a secret is left out.
func shown(key, value string) string {
	if key == names.OVSAPIToken {
		return key
	}
	return key + "=" + value
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

func (d *DB) diffExternalIDs(out *difference, root *vswitchdb.OpenvSwitch, want map[string]string) {
	del, ins, lines := mapDiff(root.ExternalIDs, want)
	if len(lines) == 0 {
		return
	}
	row := &vswitchdb.OpenvSwitch{UUID: root.UUID}
	out.add(d.api().Where(row).Mutate(row, mapMutations(&row.ExternalIDs, del, ins)...))
	for _, l := range lines {
		out.changed("external_ids", "%s", l)
	}
}

// diffBridge returns by which UUID, real or named, the bridge goes in this
// transaction.
func (d *DB) diffBridge(out *difference, want hostplan.Bridge) string {
	row := &vswitchdb.Bridge{Name: want.Name, FailMode: &want.FailMode, DatapathType: want.DatapathType}
	have, ok := d.bridge(want.Name)
	if !ok {
		out.changed("bridge", "+ %s", want)
		out.add(d.createBridge(row, 0))
		return row.UUID
	}
	is := hostplan.Bridge{Name: have.Name, FailMode: value(have.FailMode), DatapathType: have.DatapathType}
	same := is
	if same.DatapathType == "" {
		same.DatapathType = "system" // ovs-vswitchd.conf.db(5): the empty string means system
	}
	if same != want {
		row.UUID = have.UUID
		out.changed("bridge", "~ %s (was: %s)", want, is)
		out.add(d.api().Where(row).Update(row, &row.FailMode, &row.DatapathType))
	}
	return have.UUID
}

// createBridge makes the bridge with its local port, as `ovs-vsctl add-br`. It sets the
// row's named UUID and ports. mtu is for the local port; 0 leaves it unset.
func (d *DB) createBridge(row *vswitchdb.Bridge, mtu int) ([]ovsdb.Operation, error) {
	var ops operations
	port := d.createPortRows(&ops, hostplan.Port{Name: row.Name, Type: "internal", MTU: mtu})
	row.UUID, row.Ports = "bridge_"+rowName(row.Name), []string{port}
	ops.add(d.api().Create(row))
	ops.add(d.rootBridges(ovsdb.MutateOperationInsert, row.UUID))
	return ops.list, ops.err
}

// rootBridges adds a bridge to the Open_vSwitch row, or removes it with all that is on
// it (RFC 7047 section 3.2, isRoot).
func (d *DB) rootBridges(how ovsdb.Mutator, uuid string) ([]ovsdb.Operation, error) {
	root, err := d.root()
	if err != nil {
		return nil, err
	}
	row := &vswitchdb.OpenvSwitch{UUID: root.UUID}
	return d.api().Where(row).Mutate(row, model.Mutation{Field: &row.Bridges, Mutator: how, Value: []string{uuid}})
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

func (d *DB) diffPort(out *difference, bridgeRef string, want hostplan.Port) {
	iface, ok := d.iface(want.Name)
	port, okPort := d.port(want.Name)
	if !ok || !okPort {
		out.changed("port", "+ %s", want)
		out.add(d.createPort(bridgeRef, want))
		return
	}
	was := hostplan.Port{
		Bridge: want.Bridge, Name: iface.Name, Type: iface.Type, MAC: value(iface.MAC), MTU: value(iface.MTURequest),
		ExternalIDs: iface.ExternalIDs,
	}
	moves, err := d.movePort(port, bridgeRef)
	out.add(moves, err)
	if len(moves) > 0 {
		was.Bridge = "another bridge"
	}
	del, ins, lines := mapDiff(iface.ExternalIDs, want.ExternalIDs)
	row := &vswitchdb.Interface{UUID: iface.UUID}
	if len(lines) > 0 {
		out.add(d.api().Where(row).Mutate(row, mapMutations(&row.ExternalIDs, del, ins)...))
	}
	columns := was.Type != want.Type || was.MAC != want.MAC || was.MTU != want.MTU
	if columns {
		row.Type, row.MAC, row.MTURequest = want.Type, optional(want.MAC), optional(want.MTU)
		out.add(d.api().Where(row).Update(row, &row.Type, &row.MAC, &row.MTURequest))
	}
	if len(moves) > 0 || columns || len(lines) > 0 {
		out.changed("port", "~ %s (was: %s)", want, was)
	}
}

// createPort makes the port and its interface.
func (d *DB) createPort(bridgeRef string, want hostplan.Port) ([]ovsdb.Operation, error) {
	var ops operations
	port := d.createPortRows(&ops, want)
	ops.add(d.bridgePorts(bridgeRef, ovsdb.MutateOperationInsert, port))
	return ops.list, ops.err
}

// createPortRows makes the rows of a port and its interface. It returns the port's named
// UUID.
func (d *DB) createPortRows(ops *operations, want hostplan.Port) string {
	iface := &vswitchdb.Interface{
		UUID: "iface_" + rowName(want.Name), Name: want.Name, Type: want.Type,
		MAC: optional(want.MAC), MTURequest: optional(want.MTU), ExternalIDs: want.ExternalIDs,
	}
	port := &vswitchdb.Port{UUID: "port_" + rowName(want.Name), Name: want.Name, Interfaces: []string{iface.UUID}}
	ops.add(d.api().Create(iface))
	ops.add(d.api().Create(port))
	return port.UUID
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
	return d.api().Where(row).Mutate(row, model.Mutation{Field: &row.Ports, Mutator: how, Value: ports})
}

func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
