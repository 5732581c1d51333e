package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// LastVLAN is the highest tag of a VLAN (IEEE 802.1Q).
const LastVLAN = 4094

// PhysicalNetwork is a network outside that pods may be joined to.
type PhysicalNetwork struct {
	Name        string // as ovn-bridge-mappings of the nodes has it
	First, Last int    // tags that networks of pods may use; 0 for frames without a tag
}

// String is the form that ParsePhysicalNetworks reads.
func (n PhysicalNetwork) String() string {
	switch {
	case n.First == 0 && n.Last == 0:
		return n.Name
	case n.First == n.Last:
		return fmt.Sprintf("%s:%d", n.Name, n.First)
	}
	return fmt.Sprintf("%s:%d-%d", n.Name, n.First, n.Last)
}

// ParsePhysicalNetworks reads a list such as "lan,storage:100-199,voice:30". what names the setting in errors.
func ParsePhysicalNetworks(what, s string) ([]PhysicalNetwork, error) {
	return parseList(what, s, parsePhysicalNetwork)
}

func parsePhysicalNetwork(item string) (n PhysicalNetwork, err error) {
	wrong := errors.New("want NAME, NAME:VLAN or NAME:FIRST-LAST such as storage:100-199, with tags from 0, which is " +
		"none, to 4094")
	name, tags, limited := strings.Cut(item, ":")
	n.Name = name
	if name == "" || strings.ContainsAny(name, " \t") {
		return n, wrong
	}
	if !limited {
		return n, nil
	}
	first, last, isRange := strings.Cut(tags, "-")
	if !isRange {
		last = first
	}
	var errs [2]error
	n.First, errs[0] = strconv.Atoi(first)
	n.Last, errs[1] = strconv.Atoi(last)
	if errors.Join(errs[:]...) != nil || n.First < 0 || n.Last > LastVLAN || n.First > n.Last {
		return n, wrong
	}
	return n, nil
}

// Ranges lists the ranges of pods, ClusterIPs and gateway routers.
func (c Cluster) Ranges() (out []netip.Prefix) {
	for _, s := range c.Subnets {
		out = append(out, s.CIDR)
	}
	return slices.Concat(out, c.ServiceCIDRs, c.JoinSubnets)
}

// AllowsPhysical is the error that the operator does not let pods join a network outside with this tag, 0 for none.
func (c Cluster) AllowsPhysical(name string, vlan int) error {
	var listed []string
	for _, n := range c.PhysicalNetworks {
		if n.Name != name {
			continue
		}
		if n.First <= vlan && vlan <= n.Last {
			return nil
		}
		listed = append(listed, n.String())
	}
	if len(listed) > 0 {
		return fmt.Errorf("VLAN %d of physical network %q: --physical-networks of the master allows %s", vlan, name,
			strings.Join(listed, ","))
	}
	return fmt.Errorf("physical network %q is not one of --physical-networks of the master", name)
}
