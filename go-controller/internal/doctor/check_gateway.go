package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/extbridge"
	"github.com/northbound-net/northbound/go-controller/internal/hostfacts"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/gateway"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/ping"
)

// checkExternalBridge compares a gateway node's bridge with the plan of `ovnkube node`,
// and pings the next hops.
func checkExternalBridge(ctx context.Context, h *facts) Finding {
	c, why := h.gatewayConfig()
	if why != "" {
		return unchecked("%s", why)
	}
	var e *hostplan.External
	err := h.timed(ctx, func(ctx context.Context) (err error) {
		e, err = h.t.Find(ctx, c.OVSAddress,
			extbridge.Query{Interface: c.Gateway.Interface, Node: c.Name, VLAN: c.Gateway.VLAN})
		return err
	})
	if err != nil {
		return problem("%v", err).fixed(h.fixFind(c.Gateway.Interface)...)
	}
	record, _ := hostfacts.GatewayRecord(hostfacts.ExternalIDs(h.ids)) // which were read
	host := hostplan.Facts{External: e, Gateway: record, Southbound: h.ids[names.OVSRemote],
		Northbound: h.ids[names.OVSNorthbound]}
	plan, err := gateway.Plan(host, c)
	if err != nil {
		return problem("%v", err).fixed("ovs-vsctl list interface "+e.Uplink+"  # its ofport and error",
			"ovs-vsctl get Open_vSwitch . external_ids:"+names.OVSBridgeMappings+"  # want NETWORK:BRIDGE,...")
	}
	f := faults{fixes: []string{fixStartAgent}}
	if err := h.timed(ctx, func(ctx context.Context) error { return h.compareBridge(ctx, *e, plan, &f) }); err != nil {
		return unchecked("%v", err)
	}
	if l3, err := annotation.ParseL3Gateway(h.node.Annotations[annotation.L3GatewayConfig]); err == nil && l3 != nil &&
		l3.Out != "" {
		f.add("the gateway is out of service, so that other nodes' pods leave through others: " + l3.Out)
	}
	answered := ""
	if len(f.wrong) == 0 { // without its flows nothing would answer
		answered = h.pingHops(ctx, host, c, &f)
	}
	return f.finding("%s with %s, %d flows, %s; %s", e.Bridge, e.Uplink, len(plan.Flows[0].List), e.Patch, answered)
}

// gatewayConfig is the node's configuration as a gateway, or why it is none. Without
// flags it is what Open vSwitch and the Node record.
func (h *facts) gatewayConfig() (c config.Node, why string) {
	c = h.c.Node
	was, label := h.ids[names.OVSGatewayBridge], c.Gateway.NodeLabel
	switch {
	case c.Gateway.Mode == "" && was == "":
		return c, "this node is no gateway: neither --gateway-mode nor external_ids:" + names.OVSGatewayBridge + " is set"
	case label == nil:
	case h.nodeOK && !label.Accepts(h.node.Labels):
		return c, fmt.Sprintf("this node is no gateway: its labels do not match --gateway-node-label %s", label)
	case !h.nodeOK && was == "":
		return c, fmt.Sprintf("it is not known whether the labels of the Node match --gateway-node-label %s", label)
	}
	if c.Gateway.Mode != "" {
		return c, ""
	}
	c.Gateway = config.Gateway{Mode: annotation.GatewayShared, Interface: was}
	if l3, err := annotation.ParseL3Gateway(h.node.Annotations[annotation.L3GatewayConfig]); err == nil && l3 != nil {
		c.Gateway.VLAN, c.Gateway.NextHops = l3.VLAN, l3.NextHops
	}
	if kind := h.ids[names.OVSEncapType]; kind != "" {
		kind, _, _ = strings.Cut(kind, ",")
		c.EncapType = strings.TrimSpace(kind)
	}
	return c, ""
}

// fixFind is what to type when the bridge or its NIC is not found, besides what the
// error says.
func (h *facts) fixFind(name string) []string {
	if _, known := named(h.interfaces, name); known {
		return []string{"ovs-vsctl show  # the ports of " + name + ", their tags and bonds", "ip -br link"}
	}
	return []string{"ovnkube nics-to-bridge " + name, "# or --gateway-interface is another: ip -br link; ovs-vsctl show"}
}

// compareBridge adds what differs from the plan. The error says that something could
// not be read.
func (h *facts) compareBridge(ctx context.Context, e hostplan.External, plan hostplan.Plan, f *faults) error {
	flows := ovs.NewFlows(h.c.Node.OVSAddress)
	rest, has, err := flows.CatchAll(ctx, e.Bridge)
	if err != nil {
		return err
	}
	switch {
	case !has:
		f.add("bridge " + e.Bridge + " has no NORMAL flow: the host is off the network") // one of those that are missing
	case !strings.Contains(rest.Actions, "NORMAL"):
		f.add(fmt.Sprintf("flow %s of bridge %s takes what NORMAL should have", rest, e.Bridge),
			fmt.Sprintf("ovs-ofctl --strict del-flows %s table=0,priority=%d", e.Bridge, rest.Priority))
	}
	for _, want := range plan.Flows {
		if _, there := named(h.bridges, want.Bridge); !there {
			continue // an earlier one that is gone
		}
		changes, commands, err := flows.Compare(ctx, want)
		if err != nil {
			return err
		}
		if len(changes) > 0 {
			f.add(fmt.Sprintf("%d flows of %s differ, the first is %q", len(changes), want.Bridge, changes[0].String()),
				commands...)
		}
	}
	have, err := h.t.Kernel.Read(plan.Host)
	if err != nil {
		return err
	}
	changes, _ := item.Diff(plan.Host, have)
	for _, c := range changes {
		if c.Want != nil { // the rest is of other checks
			f.add(difference(c), repair(c))
		}
	}
	want, is := plan.OVS.ExternalIDs[names.OVSBridgeMappings], h.ids[names.OVSBridgeMappings]
	switch {
	case is != want:
		f.add(fmt.Sprintf("%s is %q, want %q", names.OVSBridgeMappings, is, want),
			fmt.Sprintf("ovs-vsctl set Open_vSwitch . external_ids:%s='%q'", names.OVSBridgeMappings, want))
	case e.PatchPort == 0: // without the mapping nobody would make it
		f.add(fmt.Sprintf("there is no patch port %s", e.Patch),
			"ovn-nbctl show ext_"+h.c.Node.Name+"  # has the master made it, with the port "+
				names.LocalnetPort(e.Bridge, h.c.Node.Name)+"?", fixRestartController)
	}
	return nil
}

// pingHops pings the next hop of each family from the gateway's address, and names
// those that answered.
func (h *facts) pingHops(ctx context.Context, host hostplan.Facts, c config.Node, f *faults) string {
	e := *host.External
	l3, err := gateway.L3(e, c.Name, "", c.Gateway)
	if err != nil {
		f.add(err.Error(), "ip addr show dev "+e.Link, "ip route show default")
		return ""
	}
	var answered []string
	for _, hop := range l3.NextHops {
		i := slices.IndexFunc(l3.IPs, func(p netip.Prefix) bool { return p.Addr().Is4() == hop.Is4() })
		to := hop
		if hop.IsLinkLocalUnicast() && hop.Is6() {
			to = hop.WithZone(e.Link)
		}
		err := h.timed(ctx, func(ctx context.Context) error { return h.t.Ping(ctx, l3.IPs[i].Addr(), to, smallPing) })
		switch {
		case err == nil:
			answered = append(answered, hop.String())
		case errors.Is(err, ping.ErrNoAnswer):
			f.add(fmt.Sprintf("the next hop %s does not answer", hop),
				fmt.Sprintf("ip neigh show %s dev %s  # FAILED: it is not there; else it may filter pings", hop, e.Link))
		default:
			f.add(fmt.Sprintf("the next hop %s is not reached: %v", hop, err), "ip route get "+hop.String())
		}
	}
	if len(l3.NextHops) == 0 {
		return "no next hop"
	}
	return strings.Join(answered, ", ") + " answers"
}
