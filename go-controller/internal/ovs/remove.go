package ovs

import (
	"context"
	"fmt"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"
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
