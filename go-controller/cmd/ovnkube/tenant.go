package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/tenants"
)

func tenantCommand() *cli.Command {
	to := stringFlag("to", "", "`NAMESPACE` whose tenant they join")
	to.EnvVars = nil
	subcommands := []*cli.Command{
		tenantChange("join", "have namespaces join the tenant of another: their pods reach each other", []cli.Flag{to},
			func(c *cli.Context, all tenants.Namespaces) ([]tenants.Change, error) {
				return all.Join(c.String("to"), c.Args().Slice())
			}),
		tenantChange("isolate", "make each of the namespaces a tenant of its own", nil,
			func(c *cli.Context, all tenants.Namespaces) ([]tenants.Change, error) {
				return all.Isolate(c.Args().Slice())
			}),
		tenantChange("global", "make namespaces global: they reach all tenants, and all tenants reach them", nil,
			func(c *cli.Context, all tenants.Namespaces) ([]tenants.Change, error) {
				return all.Global(c.Args().Slice())
			}),
		tenantList(),
	}
	return commandGroup("tenant", "list and change the tenants of namespaces, for masters with --multitenant", subcommands)
}

// tenantFlags say how to reach the API server.
func tenantFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{timeoutFlag(planTimeout, "`DURATION` to wait for the API server")}, kubernetesFlags(),
		[]cli.Flag{configFlag()}, logFlags("warn"))
}

// tenantChange is a command that writes annotations of Namespaces.
func tenantChange(name, usage string, flags []cli.Flag,
	changes func(*cli.Context, tenants.Namespaces) ([]tenants.Change, error),
) *cli.Command {
	return flagsAnywhere(&cli.Command{
		Name: name, Usage: usage, ArgsUsage: "NAMESPACE...",
		Description: "Writes the annotation k8s.ovn.org/tenant of the Namespaces, and says what it wrote. If any of them\n" +
			"does not exist, it writes nothing.\n\nExit code 1: an error.",
		Flags: slices.Concat(flags, tenantFlags()), OnUsageError: onUsageError,
		Before: withSettings(func(*cli.Context) error { return nil }),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return usageError{fmt.Errorf("tenant %s: want NAMESPACE..., such as shop", name)}
			}
			if len(flags) > 0 && c.String("to") == "" {
				return usageError{fmt.Errorf("tenant %s: --to is missing: want the namespace whose tenant they join", name)}
			}
			return withTenants(c, func(ctx context.Context, clients *client.Clients, all tenants.Namespaces) error {
				wanted, err := changes(c, all)
				if err != nil {
					return err
				}
				return tenants.Apply(ctx, clients, c.App.Writer, wanted)
			})
		},
	})
}

func tenantList() *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the namespaces with their tenants",
		Flags:        slices.Concat([]cli.Flag{printableFlag(asTable, "")}, tenantFlags()),
		OnUsageError: onUsageError, Before: withSettings(noArguments),
		Action: func(c *cli.Context) error {
			write, err := printer(c, asTable)
			if err != nil {
				return err
			}
			return withTenants(c, func(_ context.Context, _ *client.Clients, all tenants.Namespaces) error {
				return write(all)
			})
		},
	}
}

// withTenants reads the namespaces of the cluster.
func withTenants(c *cli.Context, do func(context.Context, *client.Clients, tenants.Namespaces) error) error {
	if _, err := newLog(c, c.App.ErrWriter); err != nil {
		return err
	}
	clients, err := client.New(kubernetesConfig(c), "northbound-tenant")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	all, err := tenants.Read(ctx, clients)
	if err != nil {
		return err
	}
	return do(ctx, clients, all)
}
