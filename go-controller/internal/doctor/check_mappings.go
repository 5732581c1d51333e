package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// checkBridgeMappings looks for networks outside that pods on this node can't reach: their bridge is not there, or none
// is named. The check external-bridge looks at the bridge of a gateway.
func checkBridgeMappings(ctx context.Context, h *facts) Finding {
	value := h.ids[names.OVSBridgeMappings]
	mappings, err := config.ParseBridgeMappings(value)
	if err != nil {
		return problem("external_ids:%s %q can't be read: %v", names.OVSBridgeMappings, value, err).
			fixed(h.fixMappings("NETWORK:BRIDGE,..."))
	}
	var f faults
	for _, m := range mappings {
		if _, there := named(h.bridges, m.Bridge); !there && m.Bridge != h.ids[names.OVSGatewayBridge] {
			f.add(fmt.Sprintf("network %s is mapped to bridge %s, which is not there", m.Network, m.Bridge),
				fmt.Sprintf("ovs-vsctl add-br %[1]s -- add-port %[1]s NIC  # the NIC that leads to %[2]s, and not the host's own",
					m.Bridge, m.Network))
		}
	}
	if h.sbErr == nil {
		err = h.timed(ctx, func(ctx context.Context) error { return h.addUnmapped(ctx, mappings, &f) })
	} else {
		err = h.sbErr
	}
	if err != nil && len(f.wrong) == 0 {
		return unchecked("which networks outside pods need: %v", err)
	}
	if value == "" {
		value = "none"
	}
	return f.finding("%s", value)
}

// fixMappings is the command that sets the mappings. An agent that is told other ones sets them back.
func (h *facts) fixMappings(mappings string) string {
	command := "ovs-vsctl set Open_vSwitch . external_ids:" + names.OVSBridgeMappings + "=" + mappings
	if len(h.c.Node.BridgeMappings) > 0 {
		command += "  # and the same in --bridge-mappings of ovnkube node"
	}
	return command
}

// addUnmapped adds the networks outside that pods of this node are in, and that no bridge is named for.
func (h *facts) addUnmapped(ctx context.Context, mappings []config.BridgeMapping, f *faults) error {
	rows, err := h.t.Ask(ctx, h.sbRemote, h.sbKeys, ovs.SouthboundDatabase, ovs.Select{Table: "Port_Binding",
		Columns: []string{"logical_port", "options"}, Where: ovs.Is("type", "localnet")})
	if err != nil {
		return err
	}
	want := slices.Clone(mappings)
	for _, row := range rows[0] {
		network, is := names.OfLocalnet(row.Text("logical_port"))
		outside := row.Map("options")["network_name"] // ovn-nb(5), Logical_Switch_Port
		if !is || slices.ContainsFunc(want, func(m config.BridgeMapping) bool { return m.Network == outside }) {
			continue
		}
		i := slices.IndexFunc(h.interfaces, func(i ovs.Row) bool {
			return network.HasPort(i.Map("external_ids")[names.IfaceID])
		})
		if i >= 0 {
			f.add(fmt.Sprintf("no bridge is named for network %s, which port %s needs", outside,
				h.interfaces[i].Map("external_ids")[names.IfaceID]))
			want = append(want, config.BridgeMapping{Network: outside, Bridge: "BRIDGE"})
		}
	}
	if len(want) > len(mappings) {
		f.fixes = append(f.fixes, h.fixMappings(hostplan.Join(want)))
	}
	return nil
}
