package ovs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/vswitchdb"
)

// hwaddr is the key of Bridge.other_config for the local port's MAC
// (ovs-vswitchd.conf.db(5)).
const hwaddr = "hwaddr"

// settlePoll is how often Settle looks.
const settlePoll = 10 * time.Millisecond

// Uplink reads a bridge that has taken in a NIC; the zero Bridge when there is none of
// this name. It asks the server and not the cache, so it sees what was written a moment
// ago.
func (d *DB) Uplink(ctx context.Context, bridge string) (b nicmove.Bridge, err error) {
	row, err := d.selectRow(ctx, vswitchdb.BridgeTable, bridge, "fail_mode", "datapath_type", "other_config",
		"external_ids")
	if row == nil || err != nil {
		return b, err
	}
	local, err := d.selectRow(ctx, vswitchdb.InterfaceTable, bridge, "mtu_request")
	if err != nil {
		return b, err
	}
	b = nicmove.Bridge{
		Name: bridge, ID: member(row["external_ids"], names.BridgeID), NIC: member(row["external_ids"], names.BridgeUplink),
		FailMode: text(row["fail_mode"]), Datapath: text(row["datapath_type"]), MAC: member(row["other_config"], hwaddr),
	}
	if b.Datapath == "" {
		b.Datapath = "system"
	}
	if mtu, ok := local["mtu_request"].(float64); ok {
		b.MTU = int(mtu)
	}
	return b, nil
}

// UplinkOf is the bridge that has this interface, "" for none, and the bridge's other
// interfaces except the local one.
func (d *DB) UplinkOf(ctx context.Context, nic string) (bridge string, others []string, err error) {
	ops := []ovsdb.Operation{
		{Op: ovsdb.OperationSelect, Table: vswitchdb.BridgeTable, Columns: []string{"name", "ports"}},
		{Op: ovsdb.OperationSelect, Table: vswitchdb.PortTable, Columns: []string{"_uuid", "name", "interfaces"}},
		{Op: ovsdb.OperationSelect, Table: vswitchdb.InterfaceTable, Columns: []string{"_uuid", "name"}},
	}
	results, err := d.submit(ctx, ops...)
	if err != nil {
		return "", nil, fmt.Errorf("asking Open vSwitch for its bridges: %w", err)
	}
	ifaces, ports := map[any]string{}, map[any][]string{} // names by UUID
	for _, r := range results[2].Rows {
		ifaces[r["_uuid"]] = text(r["name"])
	}
	for _, r := range results[1].Rows {
		for _, i := range members(r["interfaces"]) {
			ports[r["_uuid"]] = append(ports[r["_uuid"]], ifaces[i])
		}
	}
	for _, r := range results[0].Rows {
		has := false
		var rest []string
		for _, p := range members(r["ports"]) {
			for _, i := range ports[p] {
				switch i {
				case nic:
					has = true
				case text(r["name"]):
				default:
					rest = append(rest, i)
				}
			}
		}
		if has {
			return text(r["name"]), rest, nil
		}
	}
	return "", nil, nil
}

// Carry makes a step's change of the database. ovs-vswitchd then follows, see Settle.
// Steps of the kernel are package nic's.
func (d *DB) Carry(ctx context.Context, s nicmove.Step) error {
	var ops []ovsdb.Operation
	var err error
	switch t := s.Thing().(type) {
	case nicmove.Bridge:
		ops, err = d.carryBridge(ctx, t, s)
	case nicmove.Port:
		ops, err = d.carryPort(ctx, t, s.Want == nil)
	default:
		return fmt.Errorf("%T is not known here", t)
	}
	if err != nil {
		return fmt.Errorf("building the change: %w", err)
	}
	return d.transact(ctx, ops)
}

func (d *DB) carryBridge(ctx context.Context, b nicmove.Bridge, s nicmove.Step) ([]ovsdb.Operation, error) {
	row, err := d.selectRow(ctx, vswitchdb.BridgeTable, b.Name, "_uuid")
	if err != nil {
		return nil, err
	}
	switch {
	case s.Want == nil && row == nil:
		return nil, nil
	case s.Want == nil:
		return d.rootBridges(ovsdb.MutateOperationDelete, uuidOf(row))
	case row == nil:
		return d.createBridge(&vswitchdb.Bridge{
			Name: b.Name, FailMode: &b.FailMode, DatapathType: b.Datapath, OtherConfig: map[string]string{hwaddr: b.MAC},
			ExternalIDs: map[string]string{names.BridgeID: b.ID, names.BridgeUplink: b.NIC},
		}, b.MTU)
	}
	return d.updateUplink(uuidOf(row), b)
}

// updateUplink sets what b has and leaves other keys alone.
func (d *DB) updateUplink(uuid string, b nicmove.Bridge) ([]ovsdb.Operation, error) {
	var ops operations
	row := &vswitchdb.Bridge{UUID: uuid, FailMode: &b.FailMode, DatapathType: b.Datapath}
	ops.add(d.api().Where(row).Update(row, &row.FailMode, &row.DatapathType))
	set := func(field any, pairs map[string]string) {
		keys := slices.Collect(maps.Keys(pairs))
		ops.add(d.api().Where(row).Mutate(row, mapMutations(field, keys, pairs)...))
	}
	set(&row.OtherConfig, map[string]string{hwaddr: b.MAC})
	set(&row.ExternalIDs, map[string]string{names.BridgeID: b.ID, names.BridgeUplink: b.NIC})
	ops.list = append(ops.list, ovsdb.Operation{
		Op: ovsdb.OperationUpdate, Table: vswitchdb.InterfaceTable, Row: ovsdb.Row{"mtu_request": b.MTU},
		Where: []ovsdb.Condition{ovsdb.NewCondition("name", ovsdb.ConditionEqual, b.Name)},
	})
	return ops.list, ops.err
}

func (d *DB) carryPort(ctx context.Context, p nicmove.Port, remove bool) ([]ovsdb.Operation, error) {
	bridge, err := d.selectRow(ctx, vswitchdb.BridgeTable, p.Bridge, "_uuid")
	if err != nil {
		return nil, err
	}
	if !remove {
		if bridge == nil {
			return nil, fmt.Errorf("there is no bridge %s", p.Bridge)
		}
		return d.createPort(uuidOf(bridge), hostplan.Port{Bridge: p.Bridge, Name: p.NIC})
	}
	port, err := d.selectRow(ctx, vswitchdb.PortTable, p.NIC, "_uuid")
	if port == nil || bridge == nil || err != nil {
		return nil, err
	}
	return d.bridgePorts(uuidOf(bridge), ovsdb.MutateOperationDelete, uuidOf(port))
}

// Opened fails unless ovs-vswitchd could open the NIC.
func (d *DB) Opened(ctx context.Context, p nicmove.Port) error {
	row, err := d.selectRow(ctx, vswitchdb.InterfaceTable, p.NIC, "ofport", "error")
	if err != nil {
		return err
	}
	if port, _ := row["ofport"].(float64); port > 0 {
		return nil
	}
	return fmt.Errorf("ovs-vswitchd has not opened %s: %q; look at its log", p.NIC, text(row["error"]))
}

// Settle waits until ovs-vswitchd has carried out what is in the database now
// (ovs-vswitchd.conf.db(5), "next_cfg" and "cur_cfg"). It fails when ovs-vswitchd does
// not run.
func (d *DB) Settle(ctx context.Context) error {
	root, err := d.root()
	if err != nil {
		return err
	}
	where := []ovsdb.Condition{ovsdb.NewCondition("_uuid", ovsdb.ConditionEqual, ovsdb.UUID{GoUUID: root.UUID})}
	read := ovsdb.Operation{Op: ovsdb.OperationSelect, Table: vswitchdb.OpenvSwitchTable, Where: where,
		Columns: []string{"next_cfg", "cur_cfg"}}
	bump := ovsdb.Operation{
		Op: ovsdb.OperationMutate, Table: vswitchdb.OpenvSwitchTable, Where: where,
		Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("next_cfg", ovsdb.MutateOperationAdd, 1)},
	}
	results, err := d.submit(ctx, bump, read)
	if err == nil && len(results[1].Rows) == 0 {
		err = ErrNoRoot
	}
	if err != nil {
		return fmt.Errorf("asking ovs-vswitchd to follow: %w", err)
	}
	next, _ := results[1].Rows[0]["next_cfg"].(float64)
	for {
		results, err := d.submit(ctx, read)
		if err == nil && len(results[0].Rows) > 0 {
			if cur, _ := results[0].Rows[0]["cur_cfg"].(float64); cur >= next {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("ovs-vswitchd does not carry out what is in its database: does it run? %w",
				errors.Join(ctx.Err(), err))
		case <-time.After(settlePoll):
		}
	}
}

// selectRow asks the server for the row of this name; nil when there is none.
func (d *DB) selectRow(ctx context.Context, table, name string, columns ...string) (ovsdb.Row, error) {
	results, err := d.submit(ctx, ovsdb.Operation{
		Op: ovsdb.OperationSelect, Table: table, Columns: columns,
		Where: []ovsdb.Condition{ovsdb.NewCondition("name", ovsdb.ConditionEqual, name)},
	})
	if err != nil {
		return nil, fmt.Errorf("asking Open vSwitch for %s %s: %w", table, name, err)
	}
	if len(results[0].Rows) == 0 {
		return nil, nil
	}
	return results[0].Rows[0], nil
}

func uuidOf(row ovsdb.Row) string {
	u, _ := row["_uuid"].(ovsdb.UUID)
	return u.GoUUID
}

// text is a string column, also an optional one; "" when it has no value.
func text(v any) string {
	s, _ := v.(string)
	return s
}

// member is the value of a key in a map column.
func member(v any, key string) string {
	m, _ := v.(ovsdb.OvsMap)
	return text(m.GoMap[key])
}

// members are the values of a set column. A single value comes without a set.
func members(v any) []any {
	if set, ok := v.(ovsdb.OvsSet); ok {
		return set.GoSet
	}
	return []any{v}
}
