package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/extbridge"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/gateway"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// gatewayHelperCommand is `ovnkube gateway-helper`, for gateways that were set up by hand.
func gatewayHelperCommand() *cli.Command {
	return &cli.Command{
		Name:  "gateway-helper",
		Usage: "keep the flows by which this machine and its gateway router share a NIC",
		Description: "Needed on a gateway that was made with gateway-init; `ovnkube node --gateway-mode shared` does the\n" +
			"same by itself. It watches the bridge and restores lost flows. The flows stay when it stops;\n" +
			"--undo removes them.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("physical-bridge", "", "external `BRIDGE` that has the NIC, such as breth0; required"),
			stringFlag("physical-interface", "", "`NIC` in the bridge, such as eth0; required, except with --undo"),
			gatewayVLANFlag(),
			boolFlag("undo", "remove the flows and exit"),
			dryRunFlag(),
			ovsFlag(),
		}, daemonFlags(daemonNames()["gateway-helper"])),
		Action: runGatewayHelper,
	}
}

// gatewayQuery reads and checks the flags that name the bridge and its NIC.
func gatewayQuery(c *cli.Context) (extbridge.Query, error) {
	q := extbridge.Query{
		Bridge: c.String("physical-bridge"), Interface: c.String("physical-interface"), VLAN: c.Int("gateway-vlan-id"),
	}
	var errs []error
	if q.Bridge == "" {
		errs = append(errs, errors.New("--physical-bridge: the bridge that has the NIC is needed, such as breth0"))
	}
	if q.Interface == "" && !c.Bool("undo") {
		errs = append(errs, errors.New("--physical-interface: the NIC is needed, such as eth0"))
	}
	g := config.Gateway{Mode: annotation.GatewayShared, Interface: q.Interface, VLAN: q.VLAN}
	if q.Interface != "" {
		errs = append(errs, g.Validate())
	}
	if c.Bool("detach") && (c.Bool("undo") || c.Bool("dry-run")) {
		errs = append(errs, errors.New("--detach: goes with neither --undo nor --dry-run, which exit by themselves"))
	}
	if err := errors.Join(errs...); err != nil {
		return q, usageError{err}
	}
	return q, nil
}

func runGatewayHelper(c *cli.Context) error {
	query, err := gatewayQuery(c)
	if err != nil {
		return err
	}
	keep := func(ctx context.Context, log *slog.Logger, use func(*extbridge.Keeper) error) error {
		return withKeeper(ctx, c.String("ovs-address"), query, log, use)
	}
	if c.Bool("undo") || c.Bool("dry-run") {
		return keep(c.Context, slog.New(slog.DiscardHandler), func(k *extbridge.Keeper) error { return changeFlows(c, k) })
	}
	return runDaemon(c, func(ctx context.Context, log *slog.Logger, ready func()) error {
		return keep(ctx, log, func(k *extbridge.Keeper) error { return k.Run(ctx, ready) })
	})
}

// withKeeper connects a Keeper to Open vSwitch and the kernel.
func withKeeper(
	ctx context.Context, address string, q extbridge.Query, log *slog.Logger, use func(*extbridge.Keeper) error,
) error {
	db, err := ovs.Open(ctx, address, log)
	if err != nil {
		return err
	}
	defer db.Close()
	kernel, err := hostnet.NewNetlink()
	if err != nil {
		return err
	}
	defer kernel.Close()
	return use(&extbridge.Keeper{DB: db, Kernel: kernel, Flows: ovs.NewFlows(address), Query: q, Log: log})
}

// changeFlows installs the flows, or with --undo removes them, and prints the changes. With --dry-run it only prints.
func changeFlows(c *cli.Context, k *extbridge.Keeper) error {
	var want hostplan.Flows
	var err error
	if c.Bool("undo") {
		want = gateway.NoFlows(k.Query.Bridge)
	} else if want, err = k.Want(); err != nil {
		return err
	}
	do := k.Flows.Converge
	if c.Bool("dry-run") {
		do = k.Flows.Preview
	}
	changes, err := do(c.Context, want)
	for _, ch := range changes {
		fmt.Fprintln(c.App.Writer, ch)
	}
	return err
}
