package agent

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/extbridge"
	"github.com/northbound-net/northbound/go-controller/internal/hostfacts"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/encap"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/gateway"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
)

// egressPath is what a pass found of the node's gateway. A fault of the external bridge
// must not keep other parts from being set up. Then facts lack the bridge, and the plan
// leaves the gateway's part as it is.
type egressPath struct {
	facts      hostplan.Facts // with External and Gateway
	gateway    config.Gateway
	annotation string // wanted l3-gateway-config, "" to leave it as it is
}

// flowWatch is the watch of an external bridge's flows.
type flowWatch struct {
	bridge string
	stop   context.CancelFunc
}

// egressPath looks at the node's gateway. The error says what is missing for it.
func (a *Agent) egressPath(node local.Node, f hostplan.Facts) (e egressPath, err error) {
	e.facts = f
	if f.Gateway, err = a.gatewayRecord(node); err != nil {
		return e, err
	}
	c := a.config
	c.Gateway = a.gatewayFor(node, f.Gateway)
	e.gateway = c.Gateway
	said, _ := annotation.ParseL3Gateway(node.Annotations[annotation.L3GatewayConfig]) // an unreadable one says nothing
	if c.Gateway.Mode != "" && said != nil && said.Out == "" && machineRuns() >= afterBoot {
		a.outage.inService(time.Now())
	}
	a.isGateway.Store(c.Gateway.Mode != "")
	if c.Gateway.Mode == "" {
		a.outage.forget()
		a.tellOutage("")
		a.watchFlows("")
		if node.Annotations[annotation.L3GatewayConfig] != "" && f.Gateway.Bridge != "" {
			e.annotation = annotation.MarshalL3Gateway(nil)
		}
		if _, err = gateway.Plan(f, c); err == nil {
			e.facts = f
		}
		return e, err
	}
	planned, l3, err := a.sharedGateway(f, c)
	e.facts = planned
	if err != nil {
		a.outage.note(partBridge, err.Error(), time.Now())
		l3 = said
	} else {
		a.outage.note(partBridge, "", time.Now())
	}
	why := a.outage.why(time.Now())
	a.tellOutage(why)
	if l3 != nil && (err == nil || why != "") {
		l3.Out = why
		l3.PodMTU, _ = encap.MTU(f, c) // the rooms report an unknown MTU
		e.annotation = annotation.MarshalL3Gateway(l3)
	}
	return e, err
}

// tellOutage logs that the gateway went out of service, and why, or that it is back.
func (a *Agent) tellOutage(why string) {
	a.metrics.GatewayOut.Set(0)
	if why != "" {
		a.metrics.GatewayOut.Set(1)
	}
	switch was := a.memory.outage; {
	case was == why:
	case why != "":
		a.log.Warn("gateway is out of service", "node", a.config.Name, "reason", why)
	default:
		a.log.Info("gateway is in service again", "node", a.config.Name, "was", was)
	}
	a.memory.outage = why
}

// sharedGateway looks at the gateway's external bridge. It returns the facts for the
// plan, and the gateway as its annotation is to describe it. When no plan can be made,
// the facts lack the bridge.
func (a *Agent) sharedGateway(f hostplan.Facts, c config.Node) (hostplan.Facts, *annotation.L3Gateway, error) {
	without := f
	without.Gateway = hostplan.GatewayRecord{}
	query := extbridge.Query{Interface: c.Gateway.Interface, Node: c.Name, VLAN: c.Gateway.VLAN}
	e, err := extbridge.Find(a.ovs, a.kernel, query)
	if err != nil {
		return without, nil, fmt.Errorf("the gateway's external bridge: %w", err)
	}
	f.External = e
	a.watchExternal(*e)
	a.outage.note(partPatch, missingPatch(*e), time.Now())
	if _, err := gateway.Plan(f, c); err != nil {
		return without, nil, err
	}
	network, err := gateway.PlannedNetwork(f, c)
	if err != nil {
		return f, nil, err
	}
	l3, err := gateway.L3(*e, c.Name, network, c.Gateway)
	if err == nil && e.UplinkDown {
		err = fmt.Errorf("the NIC %s of the gateway's external bridge %s has no carrier: is it up, and its cable plugged in?",
			e.Uplink, e.Bridge)
	}
	return f, l3, err
}

// missingPatch says that ovn-controller has not connected the bridge, "" when
// it has.
func missingPatch(e hostplan.External) string {
	if e.PatchPort != 0 {
		return ""
	}
	return fmt.Sprintf("ovn-controller has not made the patch port %s", e.Patch)
}

// gatewayRecord is what Open vSwitch has of the gateway. Release is set once the
// cluster knows that the node is no gateway any more.
func (a *Agent) gatewayRecord(node local.Node) (x hostplan.GatewayRecord, err error) {
	if x, err = hostfacts.GatewayRecord(a.ovs); err != nil {
		return x, err
	}
	value, told := node.Annotations[annotation.L3GatewayConfig]
	l3, err := annotation.ParseL3Gateway(value)
	x.Release = node.UID != "" && (!told || err == nil && l3 == nil)
	return x, nil
}

// gatewayFor is the gateway configuration of this node: none when its labels do not
// match. While its labels are not known, a gateway stays one.
func (a *Agent) gatewayFor(node local.Node, was hostplan.GatewayRecord) config.Gateway {
	g := a.config.Gateway
	if g.NodeLabel == nil {
		return g
	}
	switch {
	case node.UID == "" && was.Bridge != "", node.UID != "" && g.NodeLabel.Accepts(node.Labels):
		return g
	}
	return config.Gateway{}
}

// watchExternal makes events of the gateway's interfaces and default routes start a
// pass.
func (a *Agent) watchExternal(e hostplan.External) {
	for _, link := range []string{e.Bridge, e.Uplink, e.Link} {
		a.wanted.Store(link, true)
	}
	for _, all := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		a.wanted.Store(netip.PrefixFrom(all, 0), true) // the default routes, for their next hops
	}
	a.watchFlows(e.Bridge)
}

// watchFlows makes changes of this bridge's flows start a pass. "" stops that.
func (a *Agent) watchFlows(bridge string) {
	if a.memory.flows.bridge == bridge {
		return
	}
	if a.memory.flows.stop != nil {
		a.memory.flows.stop()
	}
	a.memory.flows = flowWatch{bridge: bridge}
	if bridge == "" {
		return
	}
	var ctx context.Context
	ctx, a.memory.flows.stop = context.WithCancel(a.life)
	a.parts.Go(func() { a.flows.Watch(ctx, bridge, a.kick) })
}

// applyFlows writes the flows of bridges that want some, or, without some, removes the
// flows of bridges that want none. Flows come before the patch port that needs them,
// and go after the mapping that makes the patch port. A bridge that is gone has no
// flows to remove.
func (a *Agent) applyFlows(ctx context.Context, plan hostplan.Plan, some bool) error {
	for _, want := range plan.Flows {
		if some != (len(want.List) > 0) {
			continue
		}
		if _, there := a.ovs.Bridge(want.Bridge); !some && !there {
			continue
		}
		changes, err := a.flows.Converge(ctx, want)
		for _, c := range changes {
			a.changed(c.Kind, c.String())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
