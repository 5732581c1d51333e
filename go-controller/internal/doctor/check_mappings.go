package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// setMappings maps networks outside to bridges. What it begins with is kept.
const setMappings = "ovs-vsctl set Open_vSwitch . external_ids:" + names.OVSBridgeMappings + "="

// checkBridgeMappings looks for networks outside that pods on this node can't reach: their bridge is not there, or none
// is named.
func checkBridgeMappings(ctx context.Context, h *facts) Finding {
	value := h.ids[names.OVSBridgeMappings]
	mappings, err := config.ParseBridgeMappings(value)
	if err != nil {
		return problem("external_ids:%s %q can't be read: %v", names.OVSBridgeMappings, value, err).
			fixed(setMappings + "NETWORK:BRIDGE,...")
	}
	var f faults
	for _, m := range mappings {
		if _, there := named(h.bridges, m.Bridge); !there {
			f.add(fmt.Sprintf("network %s is mapped to bridge %s, which is not there", m.Network, m.Bridge),
				fmt.Sprintf("ovs-vsctl add-br %[1]s -- add-port %[1]s NIC  # the NIC that leads to %[2]s", m.Bridge, m.Network))
		}
	}
	if h.sbErr == nil {
		if err := h.timed(ctx, func(ctx context.Context) error { return h.addUnmapped(ctx, value, mappings, &f) }); err != nil {
			return unchecked("%v", err)
		}
	}
	if value == "" {
		value = "none"
	}
	return f.finding("%s", value)
}

// addUnmapped adds the networks outside that pods of this node are in, and that no bridge is named for.
func (h *facts) addUnmapped(ctx context.Context, value string, mappings []config.BridgeMapping, f *faults) error {
	rows, err := h.t.Ask(ctx, h.sbRemote, h.sbKeys, ovs.SouthboundDatabase, ovs.Select{Table: "Port_Binding",
		Columns: []string{"logical_port", "options"}, Where: ovs.Is("type", "localnet")})
	if err != nil {
		return fmt.Errorf("reading the networks outside: %w", err)
	}
	for _, row := range rows[0] {
		network, is := names.OfLocalnet(row.Text("logical_port"))
		outside := row.Map("options")["network_name"] // ovn-nb(5), Logical_Switch_Port
		mapped := slices.ContainsFunc(mappings, func(m config.BridgeMapping) bool { return m.Network == outside })
		if !is || mapped {
			continue
		}
		i := slices.IndexFunc(h.interfaces, func(i ovs.Row) bool {
			return network.HasPort(i.Map("external_ids")[names.IfaceID])
		})
		if i >= 0 {
			f.add(fmt.Sprintf("no bridge is named for network %s, which port %s of network %s needs", outside,
				h.interfaces[i].Map("external_ids")[names.IfaceID], network),
				setMappings+strings.TrimPrefix(value+","+outside+":BRIDGE", ","))
		}
	}
	return nil
}
