package ovs

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/vswitchdb"
)

// InterfaceState is what the database says about an interface.
type InterfaceState struct {
	Bridge      string // the bridge that its port is on, "" for none
	Ofport      int    // OpenFlow port number; 0 until ovs-vswitchd has opened the device, -1 when it can't
	Error       string // why it can't
	ExternalIDs map[string]string
}

// Installed tells whether ovn-controller has installed the port's flows.
func (s InterfaceState) Installed() bool { return s.ExternalIDs[names.IfaceInstalled] == "true" }

// Interface is the state of one interface; ok is false when there is none. The
// map in it must not be modified.
func (d *DB) Interface(name string) (s InterfaceState, ok bool) {
	row, ok := d.iface(name)
	if !ok {
		return s, false
	}
	s = InterfaceState{Ofport: value(row.Ofport), Error: value(row.Error), ExternalIDs: row.ExternalIDs}
	if port, ok := d.port(name); ok {
		for _, b := range d.bridgesOf(port.UUID) {
			s.Bridge = b.Name
		}
	}
	return s, true
}

// WaitInstalled returns once ovn-controller has installed the flows of the interface.
// It waits for events. When ctx ends first it returns the last state with ctx's error.
func (d *DB) WaitInstalled(ctx context.Context, name string) (InterfaceState, error) {
	for {
		woken := d.nextEvent(name) // before reading, so that no change falls between
		state, _ := d.Interface(name)
		if state.Installed() {
			return state, nil
		}
		select {
		case <-ctx.Done():
			return state, ctx.Err()
		case <-woken:
		}
	}
}

// AddPodPort puts a pod's port onto its bridge, in one transaction. It replaces what an
// earlier attempt of the same sandbox left. An older sandbox of the same pod, whose DEL
// has not come yet, loses its iface-id, so that the logical port goes to the new one. A
// port of this name that belongs to no sandbox is an error.
func (d *DB) AddPodPort(ctx context.Context, want hostplan.Port) error {
	bridge, ok := d.bridge(want.Bridge)
	if !ok {
		return fmt.Errorf("there is no bridge %s", want.Bridge)
	}
	var ops operations
	sandbox := want.ExternalIDs[names.IfaceSandbox]
	for _, r := range d.rows(vswitchdb.InterfaceTable) {
		i := r.(*vswitchdb.Interface)
		switch {
		case i.Name == want.Name && i.ExternalIDs[names.IfaceSandbox] == "":
			return fmt.Errorf("interface %s is in Open vSwitch already and no pod's", want.Name)
		case i.Name == want.Name || i.ExternalIDs[names.IfaceSandbox] == sandbox:
			ops.add(d.removePort(i.Name))
		case i.ExternalIDs[names.IfaceID] == want.ExternalIDs[names.IfaceID]:
			row := &vswitchdb.Interface{UUID: i.UUID}
			ops.add(d.api().Where(row).Mutate(row, model.Mutation{
				Field: &row.ExternalIDs, Mutator: ovsdb.MutateOperationDelete, Value: []string{names.IfaceID},
			}))
		}
	}
	ops.add(d.createPort(bridge.UUID, want))
	if ops.err != nil {
		return fmt.Errorf("building the rows of %s: %w", want, ops.err)
	}
	return d.transact(ctx, ops.list)
}

// RemovePodPorts removes the ports of every sandbox that gone accepts, and returns
// their names. It leaves ports without the sandbox key alone.
func (d *DB) RemovePodPorts(ctx context.Context, gone func(sandbox string) bool) ([]string, error) {
	var ops operations
	var removed []string
	for _, r := range d.rows(vswitchdb.InterfaceTable) {
		i := r.(*vswitchdb.Interface)
		if s := i.ExternalIDs[names.IfaceSandbox]; s == "" || !gone(s) {
			continue
		}
		ops.add(d.removePort(i.Name))
		removed = append(removed, i.Name)
	}
	if ops.err != nil {
		return nil, fmt.Errorf("building the removal of %q: %w", removed, ops.err)
	}
	return removed, d.transact(ctx, ops.list)
}

// PodPorts lists the logical ports of pods by interface.
func (d *DB) PodPorts() map[string]string {
	out := map[string]string{}
	for _, r := range d.rows(vswitchdb.InterfaceTable) {
		if i := r.(*vswitchdb.Interface); i.ExternalIDs[names.IfaceSandbox] != "" {
			out[i.Name] = i.ExternalIDs[names.IfaceID]
		}
	}
	return out
}

// Sandboxes lists the container ids that have a port.
func (d *DB) Sandboxes() []string {
	var out []string
	for _, r := range d.rows(vswitchdb.InterfaceTable) {
		if s := r.(*vswitchdb.Interface).ExternalIDs[names.IfaceSandbox]; s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Tunnels lists the tunnel addresses of other chassis: ovn-controller makes a port for each.
func (d *DB) Tunnels() []netip.Addr {
	var out []netip.Addr
	for _, r := range d.rows(vswitchdb.InterfaceTable) {
		if a, err := netip.ParseAddr(r.(*vswitchdb.Interface).Options["remote_ip"]); err == nil {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// removePort takes the port off its bridge. The rows then go by themselves, since
// nothing refers to them (RFC 7047 section 3.2, isRoot).
func (d *DB) removePort(name string) ([]ovsdb.Operation, error) {
	port, ok := d.port(name)
	if !ok {
		return nil, nil
	}
	var ops operations
	for _, b := range d.bridgesOf(port.UUID) {
		ops.add(d.bridgePorts(b.UUID, ovsdb.MutateOperationDelete, port.UUID))
	}
	return ops.list, ops.err
}

func (d *DB) bridgesOf(portUUID string) (out []*vswitchdb.Bridge) {
	for _, r := range d.rows(vswitchdb.BridgeTable) {
		if b := r.(*vswitchdb.Bridge); slices.Contains(b.Ports, portUUID) {
			out = append(out, b)
		}
	}
	return out
}
