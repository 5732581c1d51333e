package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostfacts"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/encap"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/mgmtport"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// passMemory is what one pass keeps for the next.
type passMemory struct {
	subnets []netip.Prefix // the last valid ones: a Node without them is not a node to tear down
	// nodeSubnets is the annotation that has them, and the subnets in other networks.
	nodeSubnets string
	own         []netip.Addr    // the last Node's own addresses on this host
	places      []hostnet.Place // where tunnel addresses were last, each once
	swept       time.Time       // when ports without a device were looked for
	flows       flowWatch
	outage      string             // why the gateway was out of service
	optional    map[string]attempt // the last one of each optional annotation

	services serviceMemory
	uses     usage
}

// pass compares everything once and repairs it. A part that fails does not keep the
// others from being repaired. The error says what is still missing.
func (a *Agent) pass(ctx context.Context) error {
	host := a.passHost(ctx)
	err := a.connected()
	if err != nil || host.ownErr != nil { // what depends on these addresses must not be taken for unwanted
		a.answerHealth(host.served, false)
		return errors.Join(err, host.err())
	}
	node, errs := host.node, []error{host.err()}
	facts, places, err := a.facts(node, host.own)
	if err != nil {
		a.answerHealth(host.served, false)
		return errors.Join(append(errs, err)...)
	}
	errs = append(errs, a.lostTunnel(facts.EncapIPs, places))
	egress, err := a.egressPath(node, facts)
	errs = append(errs, err)
	// The API server may be slow; what the node itself needs doesn't wait.
	published := make(chan error, 1)
	want := a.annotations(node, facts, places, egress)
	go func() { published <- a.publish(ctx, node, want) }()
	plan, err := a.rangedPlan(egress.facts, egress.gateway)
	applyErr := a.apply(ctx, plan, err == nil && len(facts.Subnets) > 0)
	a.answerHealth(host.served, err == nil && applyErr == nil)
	publishErr := <-published
	if publishErr == nil && node.UID != "" {
		a.reported.Store(true)
	}
	errs = append(errs, err, applyErr, publishErr, a.sweep(ctx))
	if len(facts.Subnets) == 0 && node.UID != "" {
		errs = append(errs, fmt.Errorf("node %q has no annotation %s yet: `ovnkube master` writes it", a.config.Name,
			annotation.NodeSubnets))
	}
	a.openGate(facts)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := a.finish(ctx); err != nil {
		return err
	}
	a.publishReady(ctx, node)
	return nil
}

// hostPass is the part of a pass that needs no Open vSwitch.
type hostPass struct {
	refused error        // what the API server refuses to list or watch
	node    local.Node   // the zero value while it is not known
	nodeErr error        // why not all of it is known
	own     []netip.Addr // its addresses here
	ownErr  error        // why they can't be told; nothing is served anew then
	served  serving
}

// err is everything that is wrong.
func (h hostPass) err() error { return errors.Join(h.refused, h.nodeErr, h.ownErr, h.served.err) }

// passHost reads the Node, and keeps the kernel's part of services. Services change
// while Open vSwitch does not answer, too.
func (a *Agent) passHost(ctx context.Context) (h hostPass) {
	h.refused = a.kube.Refusals.Err()
	if !a.kube.Synced() {
		h.nodeErr = errors.New("the API server has not answered yet")
	} else if n, ok := a.kube.Node(); !ok {
		h.nodeErr = fmt.Errorf("there is no Node %q: the kubelet makes it (is --node-name right?)", a.config.Name)
	} else {
		h.node, h.nodeErr = n, a.readSubnets(n)
	}
	a.uses(ctx, h.node)
	if h.own, h.ownErr = a.own(h.node); h.ownErr == nil {
		h.served = a.serve(ctx, h.own)
	}
	return h
}

// sweep removes pods' ports whose device is gone: after a reboot, or after a container
// ended while no agent ran. It lists the ports before the devices, because a device
// exists before its port.
func (a *Agent) sweep(ctx context.Context) error {
	if time.Since(a.memory.swept) < tickInterval {
		return nil
	}
	sandboxes := a.ovs.Sandboxes()
	links, err := a.kernel.LinkNames()
	if err != nil {
		return err
	}
	dead := map[string]bool{}
	for _, s := range sandboxes {
		if !links[names.HostVeth(s)] {
			dead[s] = true
		}
	}
	removed, err := a.ovs.RemovePodPorts(ctx, func(s string) bool { return dead[s] })
	if err != nil {
		return fmt.Errorf("removing ports of pods that are gone: %w", err)
	}
	a.memory.swept = time.Now()
	for _, name := range removed {
		a.changed("pod_port", "- port "+name+" on "+names.IntegrationBridge+", whose device is gone")
	}
	return nil
}

// openGate admits pods once br-int exists and the settings that all pods share are
// known.
func (a *Agent) openGate(f hostplan.Facts) {
	_, bridge := a.ovs.Interface(names.IntegrationBridge)
	if mtu, err := encap.MTU(f, a.config); err == nil && bridge && len(f.Subnets) > 0 {
		a.gate.open(server.Settings{MTU: mtu, Userspace: a.config.DatapathType == config.DatapathNetdev,
			NodeSubnets: a.memory.nodeSubnets})
	}
}

// readSubnets reads the node's subnets from its annotation.
func (a *Agent) readSubnets(node local.Node) error {
	value, ok := node.Annotations[annotation.NodeSubnets]
	if !ok {
		return nil
	}
	subnets, err := annotation.ParseNodeSubnets(value)
	if err != nil {
		return err
	}
	a.memory.subnets, a.memory.nodeSubnets = subnets, value
	return nil
}

// facts gathers what the plan depends on, for a node with these addresses of its own.
// Before the API server has answered, Open vSwitch has the tunnel addresses.
func (a *Agent) facts(node local.Node, own []netip.Addr) (hostplan.Facts, []hostnet.Place, error) {
	encapIPs, err := a.encapIPs(node)
	if err != nil {
		return hostplan.Facts{}, nil, err
	}
	known := hostfacts.Node{Subnets: a.memory.subnets, EncapIPs: encapIPs, Own: own}
	f, places, err := hostfacts.Gather(known, a.ovs, a.kernel)
	if err != nil {
		return f, nil, err
	}
	a.remember(places)
	a.wanted.Store(names.ManagementInterface(a.config.Name), true)
	for _, p := range places {
		a.wanted.Store(p.Link, true)
	}
	return f, places, nil
}

// encapIPs are the tunnel addresses: the configured ones; else those in Open vSwitch,
// if this host has one of them; else the Node's first internal address that this host
// has.
func (a *Agent) encapIPs(node local.Node) ([]netip.Addr, error) {
	if len(a.config.EncapIPs) > 0 {
		return a.config.EncapIPs, nil
	}
	set, err := a.ovs.ExternalID(names.OVSEncapIP)
	if err != nil {
		return nil, err
	}
	if ips, err := config.ParseAddrs(names.OVSEncapIP, set); err == nil {
		if places, err := hostfacts.Places(a.kernel, ips); err != nil || len(places) > 0 {
			return ips, err // with those that are missing: they may come back
		}
	}
	here, err := hostfacts.Places(a.kernel, hostfacts.Addrs(node.InternalIPs))
	if err != nil {
		return nil, err
	}
	if len(here) > 0 {
		return []netip.Addr{here[0].Prefix.Addr()}, nil
	}
	return nil, fmt.Errorf("no tunnel address: neither external_ids:%s (%q) nor an InternalIP of the Node (%q) is an "+
		"address of this host; give --encap-ip%s",
		names.OVSEncapIP, set, node.InternalIPs, a.lastSeen(set))
}

// own is the first of each family of the Node's internal addresses that this host has.
// Without a Node it is the last Node's.
func (a *Agent) own(node local.Node) (out []netip.Addr, err error) {
	if node.UID == "" {
		return a.memory.own, nil
	}
	if out, err = hostfacts.OnHost(a.kernel, hostfacts.Addrs(node.InternalIPs)); err == nil {
		a.memory.own = out
	}
	return out, err
}

// apply brings Open vSwitch and, with withHost, the kernel to the plan. Without
// subnets, or with an incomplete plan, the kernel stays as it is: nothing is removed
// because a wanted state is unknown.
func (a *Agent) apply(ctx context.Context, plan hostplan.Plan, withHost bool) error {
	flowErr := a.applyFlows(ctx, plan, true)
	rows, err := a.ovs.Converge(ctx, plan.OVS)
	for _, c := range rows {
		a.changed(c.Kind, c.String())
	}
	flowErr = errors.Join(flowErr, a.applyFlows(ctx, plan, false))
	if err != nil || !withHost || len(plan.Host) == 0 {
		return errors.Join(err, flowErr)
	}
	for _, i := range plan.Host {
		if r, ok := i.(hostplan.Route); ok {
			a.wanted.Store(r.Dest, true)
		}
	}
	noteErr := a.before.Note(a.kernel, plan.Host, names.ManagementInterface(a.config.Name))
	items, err := item.Converge(ctx, a.kernel, plan.Host)
	for _, c := range items {
		a.changed(c.Kind(), c.String())
	}
	return errors.Join(err, noteErr, flowErr)
}

func (a *Agent) changed(kind, line string) {
	a.metrics.Changes.WithLabelValues(kind).Inc()
	a.log.Info("node changed", "node", a.config.Name, "kind", kind, "change", line)
}

// annotations are the wanted values of those annotations that the master reads.
func (a *Agent) annotations(
	node local.Node, f hostplan.Facts, places []hostnet.Place, egress egressPath,
) map[string]string {
	want := map[string]string{annotation.NodeChassisID: encap.SystemID(f, a.config)}
	if mac, ok := mgmtport.MAC(f.Subnets); ok {
		want[annotation.NodeMgmtPortMAC] = annotation.MarshalNodeMgmtPortMAC(mac)
	}
	if addrs := a.primaryAddrs(node, places); len(addrs) > 0 {
		want[annotation.NodePrimaryIfAddr] = annotation.MarshalNodePrimaryIfAddr(addrs)
	}
	if egress.annotation != "" {
		want[annotation.L3GatewayConfig] = egress.annotation
	}
	return want
}

// publish writes those annotations that differ, in one patch.
func (a *Agent) publish(ctx context.Context, node local.Node, want map[string]string) error {
	if node.UID == "" {
		return nil // there is no Node, or it is not known yet
	}
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	for k, v := range want {
		if node.Annotations[k] == v {
			delete(want, k)
		}
	}
	if len(want) == 0 {
		return nil
	}
	if err := a.kube.PatchNode(ctx, node.UID, want); err != nil {
		return err
	}
	for k, v := range want {
		a.changed("annotation", "~ "+k+"="+v)
	}
	return nil
}

// primaryAddrs are the node's own addresses with their prefix lengths, at most one per
// family. Tunnel addresses come before the Node's internal ones.
func (a *Agent) primaryAddrs(node local.Node, places []hostnet.Place) (out []netip.Prefix) {
	for _, ip := range hostfacts.Addrs(node.InternalIPs) {
		if more, err := hostfacts.Places(a.kernel, []netip.Addr{ip}); err == nil {
			places = append(places, more...)
		}
	}
	seen := map[bool]bool{}
	for _, p := range places {
		if is4 := p.Prefix.Addr().Is4(); !seen[is4] {
			seen[is4] = true
			out = append(out, p.Prefix)
		}
	}
	return out
}

// finish writes the CNI configuration once the management port works. By that file the
// kubelet takes the network for ready. From then on a restart of ovn-controller keeps
// the flows.
func (a *Agent) finish(ctx context.Context) error {
	name := names.ManagementInterface(a.config.Name)
	if state, _ := a.ovs.Interface(name); !state.Installed() {
		if state.Ofport <= 0 {
			return &server.LimitedError{Reason: fmt.Errorf("the management port %s is not opened by Open vSwitch: %q; "+
				"look whether ovs-vswitchd runs, and at its log", name, state.Error)}
		}
		why := a.diagnosis.last(a.life, &a.parts, func(ctx context.Context) string {
			return a.ovs.Binding(ctx, names.ManagementPort(a.config.Name))
		}, a.kick)
		return &server.LimitedError{Reason: fmt.Errorf("the management port %s is not bound, "+
			"or its flows are not installed: %s", name, cmp.Or(why, "look whether ovn-controller runs"))}
	}
	line, err := keepConf(a.config)
	if line != "" {
		a.changed("cni", line)
	}
	if why := a.controller.last(a.life, &a.parts, a.askController, a.kick); why != "" {
		// Installed flows stay, so running pods keep their network; new pods get
		// none.
		return errors.Join(err, &server.LimitedError{Reason: errors.New(why)})
	}
	rows, keepErr := a.ovs.Converge(ctx, encap.KeepFlows())
	for _, c := range rows {
		a.changed(c.Kind, c.String())
	}
	return errors.Join(err, keepErr)
}

// askController says what is wrong with ovn-controller, "" when nothing is. One that
// was never found in its run directory may run elsewhere.
func (a *Agent) askController(ctx context.Context) string {
	status, err := ovs.Appctl(ctx, a.config.OVNRunDir, "ovn-controller", "connection-status")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return fmt.Sprintf("ovn-controller does not answer: %v: is it running? Pods that are there keep their network, "+
			"new ones get none", err)
	case status != "connected":
		return fmt.Sprintf("ovn-controller is %s to the Southbound database: is that running, and external_ids:%s right?",
			status, names.OVSRemote)
	}
	return ""
}
