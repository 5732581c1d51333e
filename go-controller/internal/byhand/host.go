package byhand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostfacts"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/all"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/encap"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/gateway"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// How long Open vSwitch may take to make an interface, and how often to look.
const (
	linkTimeout = 30 * time.Second
	linkPoll    = 100 * time.Millisecond
)

// host is this machine's side of one command.
type host struct {
	Setup
	ovs    *ovs.DB
	kernel *hostnet.Netlink
}

// sameNode is the error that this machine is already a node of another name.
func (h *host) sameNode() error {
	old, err := h.ovs.ExternalID(names.OVSHostname)
	if err != nil || old == "" || old == h.Node.Name {
		return err
	}
	if port, there := h.ovs.Interface(names.ManagementInterface(old)); there &&
		port.ExternalIDs[names.IfaceID] == names.ManagementPort(old) {
		return fmt.Errorf("--node-name %s: this machine is node %s already (external_ids:%s, and port %s on %s): "+
			"undo that first, or give that name", h.Node.Name, old, names.OVSHostname, names.ManagementInterface(old),
			names.IntegrationBridge)
	}
	return nil
}

// nodePlan is the plan of a node with these subnets, and its chassis name.
func (h *host) nodePlan(ctx context.Context, subnets []netip.Prefix) (hostplan.Plan, string, error) {
	known := hostfacts.Node{Subnets: subnets}
	var err error
	if known.EncapIPs, err = h.encapIPs(); err != nil {
		return hostplan.Plan{}, "", err
	}
	if known.Own, err = h.own(ctx); err != nil {
		return hostplan.Plan{}, "", err
	}
	h.Node.ServiceCIDRs = ipnet.Union(h.Node.ServiceCIDRs, h.kube.ranges)
	if len(known.Own) == 0 {
		known.Own = known.EncapIPs // there is no Node that has others
	}
	f, places, err := hostfacts.Gather(known, h.ovs, h.kernel)
	if err != nil {
		return hostplan.Plan{}, "", err
	}
	for _, ip := range f.EncapIPs {
		if !slices.ContainsFunc(places, func(p hostnet.Place) bool { return p.Prefix.Addr() == ip }) {
			return hostplan.Plan{}, "", fmt.Errorf("the tunnel address %s is on no interface of this machine: "+
				"correct --encap-ip or external_ids:%s", ip, names.OVSEncapIP)
		}
	}
	plan, failed := all.Plan(f, h.Node)
	return plan, encap.SystemID(f, h.Node), errors.Join(failed...)
}

// own is the first address of each family by which Kubernetes knows the node and which
// this machine has.
func (h *host) own(ctx context.Context) (out []netip.Addr, err error) {
	if err := h.askKube(ctx); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(h.kube.nodes, func(n *cluster.Node) bool { return n.Name == h.Node.Name })
	if i < 0 {
		return nil, nil
	}
	return hostfacts.OnHost(h.kernel, h.kube.nodes[i].Addrs)
}

// encapIPs are the tunnel addresses: those given, else those of Open vSwitch, else the
// source address of packets to the Southbound database.
func (h *host) encapIPs() ([]netip.Addr, error) {
	if len(h.Node.EncapIPs) > 0 {
		return h.Node.EncapIPs, nil
	}
	set, err := h.ovs.ExternalID(names.OVSEncapIP)
	if err != nil {
		return nil, err
	}
	if set != "" {
		ips, err := config.ParseAddrs("external_ids:"+names.OVSEncapIP, set)
		return ips, err
	}
	remote := h.Node.SBAddress
	if remote == "" {
		if remote, err = h.ovs.ExternalID(names.OVSRemote); err != nil {
			return nil, err
		}
	}
	for _, r := range strings.Split(remote, ",") {
		_, address, _ := strings.Cut(strings.TrimSpace(r), ":")
		if to, err := netip.ParseAddrPort(address); err == nil && !to.Addr().IsLoopback() {
			ip, err := h.kernel.SourceTo(to.Addr())
			if err == nil {
				return []netip.Addr{ip}, nil
			}
		}
	}
	return nil, fmt.Errorf("no tunnel address: give --encap-ip, or set external_ids:%s of the Open_vSwitch row "+
		"(external_ids:%s is %q, which does not tell one)", names.OVSEncapIP, names.OVSRemote, remote)
}

// gatewayPlan is what Open vSwitch must have for a gateway, and the gateway as
// its annotation describes it.
func (h *host) gatewayPlan(want Gateway) (hostplan.Plan, *annotation.L3Gateway, error) {
	g := &annotation.L3Gateway{IPs: want.IPs, NextHops: want.NextHops, VLAN: want.VLAN, Rampout: want.Rampout}
	// Without the management interface the node is not set up: a later step reports that.
	if management, _, err := h.link(names.ManagementInterface(h.Node.Name)); err == nil {
		g.PodMTU = management.MTU
	}
	ipnet.Sort(g.IPs)
	slices.SortFunc(g.NextHops, netip.Addr.Compare)
	var err error
	if want.NIC != "" {
		g.Bridge, g.Port = names.IntegrationBridge, names.LocalnetPort(want.NIC, h.Node.Name)
		link, err := h.nic(want.NIC)
		if err != nil {
			return hostplan.Plan{}, nil, err
		}
		g.MAC, g.MTU = link.MAC, link.MTU
		port := hostplan.Port{Bridge: names.IntegrationBridge, Name: want.NIC,
			ExternalIDs: map[string]string{names.IfaceID: g.Port}}
		return hostplan.Plan{OVS: hostplan.OVS{Ports: []hostplan.Port{port}}}, g, nil
	}
	if !h.ovs.HasBridge(want.Bridge) {
		return hostplan.Plan{}, nil, fmt.Errorf("--bridge-interface %s: there is no such Open vSwitch bridge: "+
			"`ovnkube nics-to-bridge NIC` makes one of a NIC", want.Bridge)
	}
	link, addrs, err := h.link(want.Bridge)
	if err != nil {
		return hostplan.Plan{}, nil, err
	}
	for _, ip := range want.IPs { // in a VLAN the addresses may be another device's
		if want.VLAN == 0 && !slices.Contains(addrs, ip) {
			return hostplan.Plan{}, nil,
				fmt.Errorf("--physical-ip %s: bridge %s has %v: give what it has", ip, want.Bridge, addrs)
		}
	}
	g.Bridge, g.Port, g.MAC, g.MTU = want.Bridge, names.LocalnetPort(want.Bridge, h.Node.Name), link.MAC, link.MTU
	mappings, err := h.ovs.ExternalID(names.OVSBridgeMappings)
	if err != nil {
		return hostplan.Plan{}, nil, err
	}
	if g.Network, mappings, err = mapped(mappings, want.Bridge); err != nil {
		return hostplan.Plan{}, nil, err
	}
	return hostplan.Plan{OVS: hostplan.OVS{ExternalIDs: map[string]string{names.OVSBridgeMappings: mappings}}}, g, nil
}

// mapped is the network that the mappings have for a bridge, and the mappings with it.
// A bridge without a mapping gets a network of its own.
func mapped(mappings, bridge string) (network, all string, err error) {
	list, err := config.ParseBridgeMappings(mappings)
	if err != nil {
		return "", "", fmt.Errorf("external_ids:%s: %w", names.OVSBridgeMappings, err)
	}
	m := config.BridgeMapping{Network: gateway.Network(list, bridge), Bridge: bridge}
	switch {
	case slices.Contains(list, m):
		return m.Network, mappings, nil
	case mappings == "":
		return m.Network, m.String(), nil
	}
	return m.Network, mappings + "," + m.String(), nil
}

// nic is an interface that OVN is to have alone. One with addresses is refused: the
// machine would lose them.
func (h *host) nic(name string) (hostplan.Link, error) {
	link, addrs, err := h.link(name)
	if err != nil {
		return hostplan.Link{}, err
	}
	if len(addrs) > 0 {
		return hostplan.Link{}, fmt.Errorf("--physical-interface %s: it has the addresses %v, "+
			"which the machine would lose: remove them if OVN is to have the interface alone, or share it: "+
			"`ovnkube nics-to-bridge %s` and --bridge-interface br%s", name, addrs, name, name)
	}
	if bridge, ok := h.ovs.BridgeOf(name); ok && (bridge != names.IntegrationBridge || h.ovs.HasBridge(name)) {
		return hostplan.Link{}, fmt.Errorf("--physical-interface %s: it is in the Open vSwitch bridge %s, "+
			"which would be cut off: share it (--bridge-interface %s), or take it out if OVN is to have it alone", name, bridge,
			bridge)
	}
	return link, nil
}

// link is an interface and its addresses except link-local ones.
func (h *host) link(name string) (hostplan.Link, []netip.Prefix, error) {
	items, err := h.kernel.Read([]hostplan.Item{hostplan.Link{Name: name}})
	if err != nil {
		return hostplan.Link{}, nil, err
	}
	var link hostplan.Link
	var addrs []netip.Prefix
	for _, i := range items {
		switch i := i.(type) {
		case hostplan.Link:
			link = i
		case hostplan.Addr:
			addrs = append(addrs, i.Prefix)
		}
	}
	if link.Name == "" {
		return link, nil, fmt.Errorf("there is no interface %s on this machine", name)
	}
	return link, addrs, nil
}

// apply brings the machine to the plan and prints what changed. what names the file
// that records the state before.
func (h *host) apply(ctx context.Context, what string, plan hostplan.Plan) error {
	rows, err := h.ovs.Preview(plan.OVS)
	if err != nil {
		return err
	}
	have, err := h.kernel.Read(plan.Host)
	if err != nil {
		return err
	}
	if h.DryRun {
		printLines(h.Out, rows)
		printLines(h.Out, item.Missing(plan.Host, have))
		return nil
	}
	if err := h.remember(what, plan, have); err != nil {
		return err
	}
	if rows, err = h.ovs.Converge(ctx, plan.OVS); err != nil {
		return err
	}
	printLines(h.Out, rows)
	return h.converge(ctx, plan.Host)
}

func printLines[T any](w io.Writer, list []T) {
	for _, x := range list {
		fmt.Fprintln(w, x)
	}
}

// converge brings the kernel to the plan. It waits for the interfaces that Open vSwitch
// makes.
func (h *host) converge(ctx context.Context, want []hostplan.Item) error {
	if len(want) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, linkTimeout)
	defer cancel()
	for {
		done, err := item.Converge(ctx, h.kernel, want)
		printLines(h.Out, done)
		var absent *item.LinkAbsentError
		if !errors.As(err, &absent) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(linkPoll):
		}
	}
}
