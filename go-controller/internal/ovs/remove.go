package ovs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/vswitchdb"
)

// HasBridge tells whether there is a bridge of this name.
func (d *DB) HasBridge(name string) bool {
	_, ok := d.bridge(name)
	return ok
}

// RemovePort takes a port off its bridge, as `ovs-vsctl --if-exists del-port`.
// It tells whether there was one.
func (d *DB) RemovePort(ctx context.Context, name string) (bool, error) {
	ops, err := d.removePort(name)
	if err != nil {
		return false, fmt.Errorf("building the removal of port %s: %w", name, err)
	}
	return len(ops) > 0, d.transact(ctx, ops)
}

// RemoveBridge removes a bridge with all its ports, as `ovs-vsctl --if-exists
// del-br`. It tells whether there was one.
func (d *DB) RemoveBridge(ctx context.Context, name string) (bool, error) {
	bridge, ok := d.bridge(name)
	if !ok {
		return false, nil
	}
	ops, err := d.rootBridges(ovsdb.MutateOperationDelete, bridge.UUID)
	if err != nil {
		return false, fmt.Errorf("building the removal of bridge %s: %w", name, err)
	}
	return true, d.transact(ctx, ops)
}

// RemoveKeys removes the SSL row, as `ovs-vsctl del-ssl`.
func (d *DB) RemoveKeys(ctx context.Context) error {
	root, err := d.root()
	if err != nil || root.SSL == nil {
		return err
	}
	row := &vswitchdb.OpenvSwitch{UUID: root.UUID}
	ops, err := d.api().Where(row).Update(row, &row.SSL)
	if err != nil {
		return fmt.Errorf("building the removal of the SSL row: %w", err)
	}
	return d.transact(ctx, ops)
}

// PatchesTo lists the patch ports of other bridges whose peer is a port of this bridge, or was one that ovn-controller
// had made there.
func (d *DB) PatchesTo(bridge string) (out []string) {
	for _, r := range d.rows(vswitchdb.InterfaceTable) {
		i := r.(*vswitchdb.Interface)
		if i.Type != "patch" {
			continue
		}
		at, _ := d.BridgeOf(i.Name)
		name := i.Options["peer"]
		peer, there := d.BridgeOf(name)
		if at != bridge && (peer == bridge || !there && strings.HasPrefix(name, "patch-"+bridge+"-to-")) {
			out = append(out, i.Name)
		}
	}
	slices.Sort(out)
	return out
}
