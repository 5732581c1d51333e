package outside

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// Name is the name of the machine.
const Name = "outside"

// Echo is its service: `echo serve` on port 8080, TCP and UDP.
const Echo = "echo"

// The two ends of the link to the control machine.
const (
	link       = "eth0"
	controlEnd = "outside0"
)

// Connect connects the machine to the control machine and starts Echo.
func Connect(ctx context.Context, m, control *member.Member, f underlay.Families) error {
	if err := wire(m, control, f); err != nil {
		return fmt.Errorf("connecting %s: %w", Name, err)
	}
	// Open vSwitch reads the packets of this kernel, so they must have checksums.
	if _, err := m.Run(ctx, "ethtool", "-K", link, "tx", "off"); err != nil {
		return err
	}
	return m.StartService(ctx, member.Service{Name: Echo, Argv: []string{"echo", "serve"}})
}

func wire(m, control *member.Member, f underlay.Families) error {
	c, err := control.Netlink()
	if err != nil {
		return err
	}
	defer c.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = controlEnd
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: link, PeerNamespace: netlink.NsPid(m.PID())}
	if err := c.LinkAdd(pair); err != nil {
		return fmt.Errorf("making the link: %w", err)
	}
	if err := underlay.Address(c, controlEnd, f.OutsideRouter()); err != nil {
		return err
	}
	h, err := m.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	if err := underlay.Address(h, link, f.Outside()); err != nil {
		return err
	}
	return underlay.DefaultRoutes(h, link, f.OutsideRouter())
}
