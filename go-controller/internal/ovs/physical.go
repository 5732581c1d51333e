package ovs

import (
	"fmt"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// PhysicalNetworks lists the networks outside that have a bridge here, in no order: ovn-bridge-mappings names the
// bridge, and it is there. of is a *DB, or as much of one. It is an error if the mappings can't be read.
func PhysicalNetworks(of interface {
	ExternalID(key string) (string, error)
	Interface(name string) (InterfaceState, bool) // each bridge has one of its name
}) ([]string, error) {
	value, err := of.ExternalID(names.OVSBridgeMappings)
	if err != nil {
		return nil, fmt.Errorf("reading external_ids:%s: %w", names.OVSBridgeMappings, err)
	}
	mappings, err := config.ParseBridgeMappings(value)
	if err != nil {
		return nil, fmt.Errorf("reading external_ids:%s %q: %w", names.OVSBridgeMappings, value, err)
	}
	var out []string
	for _, m := range mappings {
		if _, is := of.Interface(m.Bridge); is {
			out = append(out, m.Network)
		}
	}
	return out, nil
}
