package byhand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// An API server may take kubeTimeout to answer before the command goes on without it. Answers that are errors are asked
// for again for as long as kubeRetries.
const (
	kubeTimeout = 5 * time.Second
	kubeRetries = 2 * time.Second
)

// Setup is what a command works with.
type Setup struct {
	Kubernetes *config.Kubernetes // nil when no API server is known
	NB         config.OVSDB
	Cluster    config.Cluster // the ranges of pods with the length of this node's subnets
	Node       config.Node
	StateDir   string // of the files that the inverses read
	DryRun     bool   // print and change nothing
	Out        io.Writer
	Log        *slog.Logger

	kube *kube // what the API server said, once it was asked
}

// InitNode sets this machine up as a node. With first it also sets up the cluster router and the join switch.
func (s Setup) InitNode(ctx context.Context, subnets []netip.Prefix, first bool) error {
	return s.onHost(ctx, func(h *host) error {
		if err := h.sameNode(); err != nil {
			return err
		}
		plan, chassis, err := h.nodePlan(ctx, subnets)
		if err != nil {
			return err
		}
		err = h.north(ctx, first, func(n *cluster.Node, held []netip.Prefix) error {
			if len(held) > 0 && fmt.Sprint(held) != fmt.Sprint(subnets) {
				return fmt.Errorf("node %s has the subnets %v already, %v was asked for: undo that first, or ask for what it has",
					n.Name, held, subnets)
			}
			n.Annotated, n.ChassisID = annotation.MarshalNodeSubnets(subnets), chassis
			return nil
		})
		if err != nil {
			return err
		}
		return h.apply(ctx, "node", plan)
	})
}

// InitGateway makes this machine a gateway. Its node must have been set up before.
func (s Setup) InitGateway(ctx context.Context, want Gateway) error {
	return s.onHost(ctx, func(h *host) error {
		plan, gateway, err := h.gatewayPlan(want)
		if err != nil {
			return err
		}
		chassis, err := h.ovs.SystemID()
		if err != nil {
			return err
		}
		err = h.north(ctx, false, func(n *cluster.Node, held []netip.Prefix) error {
			if len(held) == 0 {
				return fmt.Errorf("node %s is not set up: run minion-init (or master-init) on it first", n.Name)
			}
			if chassis == "" && n.ChassisID == "" {
				return errors.New("external_ids:system-id of the Open_vSwitch row is empty, " +
					"so the gateway router can't be bound to this machine: run minion-init first")
			}
			if chassis != "" && n.ChassisID != "" && chassis != n.ChassisID {
				return fmt.Errorf("node %s is the chassis %s, and this machine is %s (external_ids:system-id): "+
					"is --node-name this machine's? If it is, run minion-init first", n.Name, n.ChassisID, chassis)
			}
			if chassis != "" {
				n.ChassisID = chassis
			}
			gateway.NodePort = n.Gateway != nil && n.Gateway.NodePort // whether an agent serves them is the agent's to say
			n.Gateway = gateway
			return nil
		})
		if err != nil {
			return err
		}
		return h.apply(ctx, "gateway", plan)
	})
}

// UndoNode is the inverse of InitNode. With last it also removes what came with the first node, and must come after all
// others.
func (s Setup) UndoNode(ctx context.Context, last bool) error {
	return s.onHost(ctx, func(h *host) error {
		err := h.northUndo(ctx, last)
		if err != nil && !errors.Is(err, ovsdb.ErrNotConnected) {
			return err
		}
		return errors.Join(h.undoAnyway(ctx, "node"), err)
	})
}

// errNoNode says that there is no node with a gateway to remove.
var errNoNode = errors.New("there is no such node")

// UndoGateway is the inverse of InitGateway.
func (s Setup) UndoGateway(ctx context.Context) error {
	return s.onHost(ctx, func(h *host) error {
		err := h.north(ctx, false, func(n *cluster.Node, held []netip.Prefix) error {
			if len(held) == 0 && n.Gateway == nil {
				return errNoNode // a change would set it up
			}
			n.Gateway, n.JoinAnnotated = nil, ""
			return nil
		})
		switch {
		case errors.Is(err, errNoNode):
			err = nil
		case err != nil && !errors.Is(err, ovsdb.ErrNotConnected):
			return err
		}
		return errors.Join(h.undoAnyway(ctx, "gateway"), err)
	})
}

// onHost opens this machine's Open vSwitch and kernel. When do prints nothing, there
// was nothing to do.
func (s Setup) onHost(ctx context.Context, do func(*host) error) error {
	var told bytes.Buffer
	s.Out, s.kube = io.MultiWriter(s.Out, &told), &kube{}
	db, err := ovs.Open(ctx, s.Node.OVSAddress, s.Log)
	if err != nil {
		return fmt.Errorf("%w (is ovsdb-server running?)", err)
	}
	defer db.Close()
	kernel, err := hostnet.NewNetlink()
	if err != nil {
		return err
	}
	defer kernel.Close()
	if err := do(&host{Setup: s, ovs: db, kernel: kernel}); err != nil {
		return err
	}
	if told.Len() == 0 {
		fmt.Fprintln(s.Out, "Nothing to do: it is as it should be.")
	}
	return nil
}

// Gateway is what gateway-init gets.
type Gateway struct {
	Bridge   string         // an external bridge that this machine shares with OVN; or
	NIC      string         // an interface for OVN alone
	IPs      []netip.Prefix // physical addresses, at most one per family
	NextHops []netip.Addr   // default gateways, at most one per family
	VLAN     int
	Rampout  []netip.Prefix
}

// Validate reports everything that is wrong. Each error names the flag.
func (g Gateway) Validate() error {
	var errs []error
	if (g.Bridge == "") == (g.NIC == "") {
		errs = append(errs, errors.New("--physical-interface and --bridge-interface: give exactly one of them"))
	}
	if g.Bridge == names.IntegrationBridge {
		errs = append(errs, fmt.Errorf("--bridge-interface %s: it is OVN's own: want the bridge that has the NIC", g.Bridge))
	}
	if g.VLAN < 0 || g.VLAN > 4094 {
		return errors.Join(append(errs, fmt.Errorf("--vlan-id %d: want 1 to 4094, or 0 for none", g.VLAN))...)
	}
	if len(g.IPs) == 0 {
		errs = append(errs, errors.New("--physical-ip: this machine's address with its prefix length is needed, "+
			"such as 172.17.42.31/16"))
	}
	// The master refuses what the annotation's reader refuses.
	if len(g.IPs) > 0 {
		l3 := annotation.L3Gateway{Bridge: "b", Port: "p", MAC: ipnet.MAC{2}, IPs: g.IPs, NextHops: g.NextHops,
			VLAN: g.VLAN, Rampout: g.Rampout}
		if _, err := annotation.ParseL3Gateway(annotation.MarshalL3Gateway(&l3)); err != nil {
			errs = append(errs, fmt.Errorf("--physical-ip %v --default-gw %v: %w", g.IPs, g.NextHops, err))
		}
		for _, hop := range g.NextHops {
			if !hop.IsLinkLocalUnicast() && !slices.ContainsFunc(g.IPs,
				func(p netip.Prefix) bool { return p.Masked().Contains(hop) }) {
				errs = append(errs, fmt.Errorf("--default-gw %s: is not in the network of --physical-ip %s", hop,
					config.PrefixList(g.IPs)))
			}
		}
	}
	return errors.Join(errs...)
}
