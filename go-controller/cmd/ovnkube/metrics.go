package main

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/review"
	"github.com/northbound-net/northbound/go-controller/internal/scrape"
)

// metricsCommand is `ovnkube metrics`, a container of the chart's pods.
func metricsCommand() *cli.Command {
	return &cli.Command{
		Name:  "metrics",
		Usage: "serve a daemon's metrics to Prometheus in the network",
		Description: "The daemons serve their metrics on the loopback address. This program serves those of one of them\n" +
			"over TLS, to callers whose token the API server knows, and who may get the non-resource URL /metrics.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("listen", "", "`ADDRESS:PORT` to listen on; :PORT is all addresses; required"),
			stringFlag("daemon", "", "`ADDRESS:PORT` of the daemon's metrics; required"),
		}, kubernetesFlags(), logFlags("info")),
		OnUsageError: onUsageError,
		Before:       noArguments,
		Action:       runMetrics,
	}
}

func runMetrics(c *cli.Context) error {
	for _, flag := range []string{"listen", "daemon"} {
		if _, _, err := net.SplitHostPort(c.String(flag)); err != nil {
			return usageError{fmt.Errorf("--%s %q: want ADDRESS:PORT: %w", flag, c.String(flag), err)}
		}
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	clients, err := client.New(kubernetesConfig(c), "ovnkube-metrics")
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return fmt.Errorf("listening for metrics: %w", err)
	}
	s := &scrape.Server{Daemon: "http://" + c.String("daemon") + "/metrics", Log: log,
		Review: func(ctx context.Context, token string) error { return review.Metrics(ctx, clients.Kube, token) }}
	log.Info("serving metrics", "daemon", c.String("daemon"), "address", listener.Addr())
	return s.Serve(c.Context, listener)
}
