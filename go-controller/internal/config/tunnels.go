package config

import (
	"errors"
	"fmt"
	"slices"
)

// Tunnels is what the tunnels of all nodes have in common. The master does not use it: it publishes what the operator
// gave, for the agents.
type Tunnels struct {
	EncapType string // EncapGeneve or EncapVXLAN; "" leaves it to each agent
	MTU       int    // of pods and management ports in bytes; 0 leaves it to each agent
}

// The smallest MTU for IPv4 (RFC 791) and for IPv6 (RFC 8200 section 5), and the largest of an interface.
const (
	minMTUv4 = 576
	minMTUv6 = 1280
	maxMTU   = 65535
)

// validate returns an error for what is wrong, with the flag's name. Pods have addresses in the subnets.
func (t Tunnels) validate(subnets []ClusterSubnet) error {
	var errs []error
	if t.EncapType != "" && t.EncapType != EncapGeneve && t.EncapType != EncapVXLAN {
		errs = append(errs, fmt.Errorf("--encap-type %q: want %s or %s", t.EncapType, EncapGeneve, EncapVXLAN))
	}
	least := LeastMTU(subnets)
	if t.MTU != 0 && (t.MTU < least || t.MTU > maxMTU) {
		errs = append(errs, fmt.Errorf("--mtu %d: want between %d and %d bytes, or 0 to derive it from the tunnel interface",
			t.MTU, least, maxMTU))
	}
	return errors.Join(errs...)
}

// LeastMTU is the smallest MTU, in bytes, of pods with addresses in the subnets.
func LeastMTU(subnets []ClusterSubnet) int {
	if slices.ContainsFunc(subnets, func(s ClusterSubnet) bool { return s.CIDR.Addr().Is6() }) {
		return minMTUv6
	}
	return minMTUv4
}
