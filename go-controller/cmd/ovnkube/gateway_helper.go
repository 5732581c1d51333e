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

// gatewayHelperCommand is `ovnkube gateway-helper`.
func gatewayHelperCommand() *cli.Command {
	return &cli.Command{
		Name:  "gateway-helper",
		Usage: "keep the flows by which this machine and its gateway router share a NIC",
		Description: "For a gateway that was made with gateway-init; `ovnkube node --gateway-mode shared` does the same by itself.\n" +
			"It watches the bridge and puts back what is lost. Stopping it changes nothing: the flows stay; --undo removes them.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("physical-bridge", "", "external `BRIDGE` that has the NIC, such as breth0"),
			stringFlag("physical-interface", "", "the `NIC`, such as eth0"),
			&cli.IntFlag{Name: "gateway-vlan-id", EnvVars: env("gateway-vlan-id"), Usage: "VLAN `ID` of the gateway's network on the NIC, 0 for none"},
			boolFlag("undo", "remove the flows, and end"),
			dryRunFlag(),
			ovsFlag(),
		}, daemonFlags(daemonNames()["gateway-helper"])),
		Action: runGatewayHelper,
	}
}

// gatewayQuery reads which bridge is meant.
func gatewayQuery(c *cli.Context) (extbridge.Query, error) {
	q := extbridge.Query{Bridge: c.String("physical-bridge"), Interface: c.String("physical-interface"), VLAN: c.Int("gateway-vlan-id")}
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
		errs = append(errs, errors.New("--detach: goes with neither --undo nor --dry-run, which end by themselves"))
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
	if c.Bool("undo") || c.Bool("dry-run") {
		return withKeeper(c.Context, c.String("ovs-address"), query, slog.New(slog.DiscardHandler), func(k *extbridge.Keeper) error {
			return changeFlows(c, k)
		})
	}
	return runDaemon(c, func(ctx context.Context, log *slog.Logger, ready func()) error {
		return withKeeper(ctx, c.String("ovs-address"), query, log, func(k *extbridge.Keeper) error { return k.Run(ctx, ready) })
	})
}

// withKeeper opens what a Keeper works with.
func withKeeper(ctx context.Context, address string, q extbridge.Query, log *slog.Logger, use func(*extbridge.Keeper) error) error {
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

// changeFlows prints what it changes, or with --dry-run would change.
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
