package gateway

import (
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Plan is the flows of the external bridge, its place in ovn-bridge-mappings, and a
// record of both in the Open_vSwitch row. By the record, a node that is no gateway any
// more, or has another external bridge, removes what an earlier configuration added,
// and nothing else. Without External nothing is known, and everything stays.
func Plan(f hostplan.Facts, c config.Node) (hostplan.Plan, error) {
	if c.Gateway.Mode == "" {
		return undo(f, c)
	}
	if f.External == nil {
		return hostplan.Plan{}, nil
	}
	e := *f.External
	others, err := mappings(f.Gateway, c)
	if err != nil {
		return hostplan.Plan{}, err
	}
	if err := Fits(e); err != nil {
		return hostplan.Plan{}, err
	}
	network, added := Network(others, e.Bridge), ""
	if m := (config.BridgeMapping{Network: network, Bridge: e.Bridge}); !slices.Contains(others, m) {
		others, added = append(others, m), m.String()
	}
	p := hostplan.Plan{OVS: hostplan.OVS{ExternalIDs: map[string]string{
		names.OVSBridgeMappings: hostplan.Join(others), names.OVSGatewayBridge: e.Bridge, names.OVSGatewayMapping: added,
	}}}
	p.Flows = []hostplan.Flows{Flows(e, c.EncapType, hostplan.NewAntiSpoof(f, c), hostplan.NewDatabaseDrop(f, c))}
	if f.Gateway.Bridge != "" && f.Gateway.Bridge != e.Bridge {
		p.Flows = append(p.Flows, NoFlows(f.Gateway.Bridge))
	}
	if e.Userspace {
		p.Host = []hostplan.Item{hostplan.IngressDrop{Link: e.Uplink}}
	}
	return p, nil
}

// NoFlows is a bridge without our flows.
func NoFlows(bridge string) hostplan.Flows { return hostplan.Flows{Bridge: bridge, Cookie: Cookie} }

// Network is the name that ovn-bridge-mappings has, or gets, for the network behind
// bridge, beside these mappings.
func Network(others []config.BridgeMapping, bridge string) string {
	taken := false
	for _, m := range others {
		if m.Bridge == bridge {
			return m.Network
		}
		taken = taken || m.Network == annotation.DefaultPhysicalNetwork
	}
	if taken {
		return bridge
	}
	return annotation.DefaultPhysicalNetwork
}

// PlannedNetwork is Network in the plan of these facts.
func PlannedNetwork(f hostplan.Facts, c config.Node) (string, error) {
	others, err := mappings(f.Gateway, c)
	if err != nil || f.External == nil {
		return "", err
	}
	return Network(others, f.External.Bridge), nil
}

// undo takes back what the record has.
func undo(f hostplan.Facts, c config.Node) (hostplan.Plan, error) {
	if f.Gateway.Bridge == "" {
		return hostplan.Plan{}, nil
	}
	others, err := mappings(f.Gateway, c)
	if err != nil {
		return hostplan.Plan{}, err
	}
	ids := map[string]string{names.OVSBridgeMappings: hostplan.Join(others)}
	if f.Gateway.Release {
		ids[names.OVSGatewayBridge], ids[names.OVSGatewayMapping] = "", ""
	}
	return hostplan.Plan{OVS: hostplan.OVS{ExternalIDs: ids}, Flows: []hostplan.Flows{NoFlows(f.Gateway.Bridge)}}, nil
}

// mappings are those that are not ours: the configured ones, else those of the row
// without the one that we added.
func mappings(x hostplan.GatewayRecord, c config.Node) ([]config.BridgeMapping, error) {
	if len(c.BridgeMappings) > 0 {
		return slices.Clone(c.BridgeMappings), nil
	}
	list, err := config.ParseBridgeMappings(x.Mappings)
	if err != nil {
		return nil, fmt.Errorf("reading external_ids:%s: %w", names.OVSBridgeMappings, err)
	}
	return slices.DeleteFunc(list, func(m config.BridgeMapping) bool { return m.String() == x.Added }), nil
}

// Fits is the error why the bridge can't be shared as it is.
func Fits(e hostplan.External) error {
	if e.UplinkPort <= 0 {
		return fmt.Errorf("the NIC %s on bridge %s is not opened by Open vSwitch: is the interface there, "+
			"and does ovs-vswitchd run?", e.Uplink, e.Bridge)
	}
	if e.LocalTag != 0 && e.LocalTag != e.VLAN {
		return fmt.Errorf("port %s has tag=%d: give --gateway-vlan-id %d, or take the tag off", e.Bridge, e.LocalTag,
			e.LocalTag)
	}
	return nil
}
