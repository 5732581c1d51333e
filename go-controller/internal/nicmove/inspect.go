package nicmove

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/nic"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// refuse returns why a NIC cannot be moved into its bridge, nil if it can.
func (m *Mover) refuse(nic, bridge, datapath string, have nicmove.Host) error {
	s, ok, err := m.Kernel.Standing(nic)
	if err != nil {
		return err
	}
	if !ok {
		return m.noSuch(nic)
	}
	if err := refuseStanding(s, have.PortOn == bridge, datapath); err != nil {
		return err
	}
	switch row := have.Row; {
	case have.PortOn != "" && have.PortOn != bridge:
		return fmt.Errorf("it is in the Open vSwitch bridge %s already", have.PortOn)
	case row == nicmove.Bridge{} && have.Bridge.Exists():
		return fmt.Errorf("there is an interface %s already, and it is no Open vSwitch bridge: remove or rename it",
			bridge)
	case row == nicmove.Bridge{}:
		return nil
	case row.NIC != nic && row.NIC != "":
		return fmt.Errorf("its bridge would be %s (names of interfaces have at most 15 characters), which is that of %s: "+
			"rename one of them (ip link set NAME name NEW)", bridge, row.NIC)
	case row.NIC == "" && have.PortOn != bridge:
		return fmt.Errorf("there is an Open vSwitch bridge %s already that has no external_ids:%s: remove or rename it",
			bridge, names.BridgeUplink)
	case row.Datapath != datapath:
		return fmt.Errorf("bridge %s has datapath_type=%s, not %s: run bridges-to-nic %s first",
			bridge, row.Datapath, datapath, bridge)
	}
	return nil
}

// refuseStanding returns why an interface cannot become a port of the bridge, nil if it can. isPort is set if it is one
// already.
func refuseStanding(s nic.Standing, isPort bool, datapath string) error {
	switch {
	case s.Loopback:
		return errors.New("it is a loopback interface: want a NIC")
	case s.Kind == "bridge" || s.Kind == "openvswitch" || s.Kind == "vrf":
		return fmt.Errorf("it is of kind %q: want a NIC, or a bond or VLAN interface", s.Kind)
	case s.Master != "" && !isPort:
		return fmt.Errorf("it is a part of %s: give that one, or take the NIC out of it first", s.Master)
	}
	for _, u := range s.Upper {
		if datapath == nicmove.DatapathNetdev || !strings.HasSuffix(u, "(vlan)") {
			return fmt.Errorf("the interface %s is on top of it and would get no more frames: remove that first", u)
		}
	}
	return nil
}

func (m *Mover) noSuch(nic string) error {
	all, err := m.Kernel.LinkNames()
	if err != nil {
		return err
	}
	delete(all, "lo")
	return fmt.Errorf("there is no such interface: this host has %s", strings.Join(slices.Sorted(maps.Keys(all)), ", "))
}

// collisions returns an error if two NICs would share a bridge.
func collisions(nics []string) error {
	of := map[string]string{}
	for _, nic := range nics {
		bridge := names.UplinkBridge(nic)
		if other, ok := of[bridge]; ok {
			if other == nic {
				return fmt.Errorf("%s is given twice", nic)
			}
			return fmt.Errorf("%s and %s would both go into bridge %s, as names of interfaces have at most 15 characters: "+
				"rename one of them (ip link set NAME name NEW)", other, nic, bridge)
		}
		of[bridge] = nic
	}
	return nil
}

// nicOf returns the NIC that was moved into a bridge. It returns "" if neither the bridge nor an undo file for it
// exists.
func (m *Mover) nicOf(ctx context.Context, bridge string) (string, error) {
	row, err := m.OVS.Uplink(ctx, bridge)
	if err != nil || row.NIC != "" {
		return row.NIC, err
	}
	nic, err := m.Store.NICOf(bridge)
	if err != nil || nic != "" {
		return nic, err
	}
	if row == (nicmove.Bridge{}) {
		return "", nil
	}
	return "", fmt.Errorf("it has no external_ids:%s, so its NIC is unknown: `ovs-vsctl br-set-external-id %s %s NIC`",
		names.BridgeUplink, bridge, names.BridgeUplink)
}
