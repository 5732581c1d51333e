package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ping"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// fixStartAgent restarts the agent, which repairs what it keeps.
const fixStartAgent = "# `ovnkube node` keeps this: systemctl restart ovnkube-node; by hand:"

func checkSubnets(_ context.Context, h *facts) Finding {
	var list []string
	for _, s := range h.subnets {
		list = append(list, s.String())
	}
	switch {
	case errors.Is(h.planErr, errOtherFlags):
		return problem("%v", h.planErr).
			fixed("# give the doctor the flags, the environment or the --config-file of `ovnkube node`")
	case len(list) > 0 && !errors.Is(h.planErr, errNoSubnets):
		return ok("%s (%s)", strings.Join(list, ", "), h.source)
	case errors.Is(h.planErr, errNoSubnets) && h.nodeOK:
		return problem("Node %q has no annotation %s", h.c.Node.Name, annotation.NodeSubnets).
			fixed("# `ovnkube master` writes it: does it run, and are subnets left?")
	case errors.Is(h.planErr, errNoSubnets):
		return unchecked("neither a Node nor the management port %s tells them", names.ManagementInterface(h.c.Node.Name))
	}
	return problem("%v", h.planErr).
		fixed("kubectl annotate node " + h.c.Node.Name + " " + annotation.NodeSubnets +
			"-  # `ovnkube master` writes it anew")
}

func checkManagementPort(ctx context.Context, h *facts) Finding {
	name, id := names.ManagementInterface(h.c.Node.Name), names.ManagementPort(h.c.Node.Name)
	add := fmt.Sprintf("ovs-vsctl --may-exist add-port %s %s -- set interface %s type=internal external_ids:%s=%s",
		names.IntegrationBridge, name, name, names.IfaceID, id)
	i, exists := named(h.interfaces, name)
	switch {
	case !exists:
		return problem("there is no port %s in Open vSwitch", name).fixed(fixStartAgent, add)
	case i.Text("type") != "internal" || i.Map("external_ids")[names.IfaceID] != id:
		return problem("port %s has type %q and %s %q, want internal and %s", name, i.Text("type"), names.IfaceID,
			i.Map("external_ids")[names.IfaceID], id).fixed(fixStartAgent, add)
	case i.Int("ofport") <= 0:
		return problem("ovs-vswitchd has not opened port %s: %q", name, i.Text("error")).fixed(fixRestartOVS)
	case i.Map("external_ids")[names.IfaceInstalled] != "true":
		return h.notInstalled(ctx, id)
	}
	return ok("%s is bound to %s and has its flows", name, id)
}

// whyNotInstalled is how far a logical port has come.
func (h *facts) whyNotInstalled(ctx context.Context, id string) string {
	if h.sbErr != nil {
		return "the Southbound database does not answer"
	}
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	why, err := h.t.Explain(ctx, h.sbRemote, h.sbKeys, id, h.ids[names.OVSSystemID])
	if err != nil {
		return err.Error()
	}
	return why
}

// notInstalled reports how far the logical port of the management port has come.
func (h *facts) notInstalled(ctx context.Context, id string) Finding {
	return problem("the flows of %s are not installed: %s", id, h.whyNotInstalled(ctx, id)).
		fixed("ovn-nbctl lsp-list "+h.c.Node.Name+"  # is "+id+" there?", fixRestartController)
}

// differences compares items of the plan with the kernel's: those of changes that of
// accepts.
func (h *facts) differences(of func(item.Change) bool, fine string) Finding {
	switch {
	case errors.Is(h.planErr, errNoSubnets):
		return unchecked("the node's subnets are not known")
	case h.planErr != nil:
		return unchecked("%v", h.planErr)
	}
	changes, absent := item.Diff(h.want.Host, h.have)
	f := faults{fixes: []string{fixStartAgent}}
	for _, c := range changes {
		if of(c) {
			f.add(difference(c), repair(c))
		}
	}
	for _, link := range absent {
		if of(item.Change{Want: hostplan.Link{}}) {
			f.add("interface "+link+" does not exist", "# see the check management-port")
		} else if len(f.wrong) == 0 {
			return unchecked("interface %s does not exist", link)
		}
	}
	return f.finding("%s", fine)
}

// difference is a change in words: what is there, and what should be.
func difference(c item.Change) string {
	switch {
	case c.Have == nil:
		return "missing: " + c.Want.String()
	case c.Want == nil:
		return "should not be: " + c.Have.String()
	}
	return fmt.Sprintf("is: %s, want: %s", c.Have, c.Want)
}

// repair is the command that makes a change.
func repair(c item.Change) string {
	if c.Want == nil {
		switch i := c.Have.(type) {
		case hostplan.Addr:
			return fmt.Sprintf("ip addr del %s dev %s", i.Prefix, i.Link)
		case hostplan.Route:
			return fmt.Sprintf("ip route del %s dev %s proto %d", i.Dest, i.Link, i.Protocol)
		case hostplan.Neighbour:
			return fmt.Sprintf("ip neigh del %s dev %s", i.IP, i.Link)
		}
		return "# remove it"
	}
	switch i := c.Want.(type) {
	case hostplan.Link:
		return fmt.Sprintf("ip link set %s address %s mtu %d up", i.Name, i.MAC, i.MTU)
	case hostplan.Addr:
		return fmt.Sprintf("ip addr add %s dev %s", i.Prefix, i.Link)
	case hostplan.Neighbour:
		return fmt.Sprintf("ip neigh replace %s lladdr %s dev %s nud permanent", i.IP, i.MAC, i.Link)
	case hostplan.Route:
		src := ""
		if i.Src.IsValid() {
			src = fmt.Sprintf(" src %s", i.Src)
		}
		return fmt.Sprintf("ip route replace %s via %s dev %s%s proto %d", i.Dest, i.Via, i.Link, src, i.Protocol)
	case hostplan.Sysctl:
		return fmt.Sprintf("sysctl -w %s=%s", i.Path, i.Value)
	}
	return "# its table is made by `ovnkube node` alone"
}

func kinds(all ...string) func(item.Change) bool {
	return func(c item.Change) bool { return slices.Contains(all, c.Kind()) }
}

func checkManagementInterface(_ context.Context, h *facts) Finding {
	link := names.ManagementInterface(h.c.Node.Name)
	return h.differences(kinds("link", "addr", "neigh"), link+" is up, with its addresses, MAC, MTU and neighbours")
}

func checkRoutes(_ context.Context, h *facts) Finding {
	return h.differences(kinds("route"), "pods and services are reached through "+names.ManagementInterface(h.c.Node.Name))
}

func checkSysctls(_ context.Context, h *facts) Finding {
	return h.differences(kinds("sysctl"), "all as they should be")
}

func checkMasquerade(_ context.Context, h *facts) Finding {
	if h.c.Node.Gateway.Mode != "" || h.ids[names.OVSGatewayBridge] != "" {
		return unchecked("this node's pods leave through its gateway router")
	}
	return h.differences(about("masquerade"), "packets of this node's pods leave with its address")
}

func checkHairpin(_ context.Context, h *facts) Finding {
	return h.differences(about("hairpin"), "the node reaches services whose backend it is itself")
}

func checkAntiSpoof(_ context.Context, h *facts) Finding {
	return h.differences(about("anti-spoof"), "packets from outside with a source within the cluster don't reach pods")
}

func checkDatabaseDrop(_ context.Context, h *facts) Finding {
	return h.differences(about("database-drop"), "packets from pods don't reach the ports of OVN's databases")
}

// about accepts changes of the item with this key.
func about(key string) func(item.Change) bool {
	return func(c item.Change) bool {
		return c.Want != nil && c.Want.Key() == key || c.Have != nil && c.Have.Key() == key
	}
}

// checkRouter pings the cluster router through the management port.
func checkRouter(ctx context.Context, h *facts) Finding {
	if h.planErr != nil {
		return unchecked("the node's subnets are not known")
	}
	var answered []string
	for _, s := range h.subnets {
		router, _ := subnet.Router(s) // a plan was made of these subnets
		address, _ := subnet.Management(s)
		if err := h.pingRouter(ctx, address, router); err != nil {
			if !errors.Is(err, ping.ErrNoAnswer) {
				return unchecked("%v", err)
			}
			return problem("the cluster router's %s does not answer: %v", router, err).
				fixed("# when the checks before are fine: ovn-nbctl show; ovn-trace " + h.c.Node.Name)
		}
		answered = append(answered, router.String())
	}
	return ok("%s answers", strings.Join(answered, ", "))
}

func (h *facts) pingRouter(ctx context.Context, from, to netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	if _, here, err := h.t.Kernel.Find(from); err != nil || !here {
		return fmt.Errorf("the management port's address %s is not on this host", from)
	}
	return h.t.Ping(ctx, from, to, smallPing)
}
