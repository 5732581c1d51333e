package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/dbserver"
	"github.com/northbound-net/northbound/go-controller/internal/dbserver/link"
	"github.com/northbound-net/northbound/go-controller/internal/health"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/database"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
)

// databaseCommand is `ovnkube database`, for the pods that run OVN's databases.
func databaseCommand() *cli.Command {
	return commandGroup("database", "run OVN's databases in pods of the cluster, as the Helm chart does",
		[]*cli.Command{databaseServeCommand(), databaseMaintainCommand()})
}

func databaseServeCommand() *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "run the server of one database, as a member of the database's Raft cluster",
		Description: "Makes the database's file first: it creates the cluster, or joins it. Then ovsdb-server takes\n" +
			"the place of this program.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("database", "", "`NAME` of the database: nb or sb; required"),
		}, databaseFlags()),
		OnUsageError: onUsageError,
		Before:       noArguments,
		Action: func(c *cli.Context) error {
			d, err := dbserver.ByName(c.String("database"))
			if err != nil {
				return usageError{fmt.Errorf("--database: %w", err)}
			}
			m, _, err := databaseMember(c)
			if err != nil {
				return err
			}
			if err := m.Prepare(c.Context, d); err != nil {
				return err
			}
			if err := c.Err(); err != nil {
				return fmt.Errorf("starting the server of the database: %w", err)
			}
			argv := m.ServerArgs(d)
			path, err := exec.LookPath(argv[0])
			if err != nil {
				return fmt.Errorf("starting the server of the database: %w", err)
			}
			return fmt.Errorf("starting %s: %w", path, syscall.Exec(path, argv, append(os.Environ(), m.ServerEnv()...)))
		},
	}
}

func databaseMaintainCommand() *cli.Command {
	return &cli.Command{
		Name:  "maintain",
		Usage: "configure the databases of this node, and connect them with those of other nodes",
		Description: "Where this node's server leads a database, it upgrades the schema, has all servers listen for\n" +
			"clients, and removes servers that are gone. Connections between the nodes use TCP port 6643, with TLS.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("listen", "[::]", "`ADDRESS` that the servers listen on; [::] is all of both families"),
			metricsFlag("127.0.0.1:9411"),
		}, databaseFlags()),
		OnUsageError: onUsageError,
		Before:       noArguments,
		Action: func(c *cli.Context) error {
			m, cluster, err := databaseMember(c)
			if err != nil {
				return err
			}
			return maintain(c.Context, m, cluster, c.String("metrics-bind-address"))
		},
	}
}

// databaseFlags are those of both commands.
func databaseFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		stringFlag("node-name", "", "`NAME` of the Kubernetes Node; required"),
		stringFlag("service", "ovn-kubernetes/ovn-db", "`NAMESPACE/NAME` of the Service of the databases"),
		stringFlag("directory", "/var/lib/ovn", "`DIR` for the databases' files"),
		stringFlag("run-directory", "/run/ovn", "`DIR` for sockets"),
		stringFlag("schema-directory", "/usr/share/ovn", "`DIR` of OVN's schemas"),
		stringFlag("certificates", "/certificates", "`DIR` that `ovnkube certificates --for=database` writes to"),
	}, kubernetesFlags(), logFlags("info"))
}

// databaseMember reads the flags.
func databaseMember(c *cli.Context) (dbserver.Member, database.Cluster, error) {
	var m dbserver.Member
	var cluster database.Cluster
	if c.String("node-name") == "" {
		return m, cluster, usageError{errors.New("--node-name: the name of the Node is missing")}
	}
	service, err := database.ParseService("service", c.String("service"), "nb")
	if err != nil {
		return m, cluster, usageError{err}
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return m, cluster, err
	}
	clients, err := client.New(kubernetesConfig(c), "ovnkube-database")
	if err != nil {
		return m, cluster, err
	}
	cluster = database.Cluster{Kube: clients.Kube, Service: service}
	return dbserver.Member{
		Layout: dbserver.Layout{Files: c.String("directory"), Run: c.String("run-directory"),
			Schemas: c.String("schema-directory"), Certificates: c.String("certificates")},
		Node: c.String("node-name"), Listen: c.String("listen"), Cluster: cluster, Log: log,
	}, cluster, nil
}

// maintain keeps both databases, and the connections between nodes, until ctx ends.
func maintain(ctx context.Context, m dbserver.Member, cluster database.Cluster, metricsAddress string) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Metrics = metrics.NewDatabase(registry)
	web, err := health.Listen(metricsAddress, registry, health.Probes{}, m.Log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	peers := &database.Follower{Cluster: cluster, Log: m.Log}
	l := &link.Link{Listen: m.Listen, Port: link.Port, Node: m.Node, Channels: m.Channels(), TLS: m.TLS, Log: m.Log,
		Addresses: peers.Addresses}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { web.Run(ctx) })
	running.Go(func() { peers.Follow(ctx) })
	running.Go(func() { l.Lead(ctx, lookForPeers) })
	running.Go(func() { m.WatchNorthd(ctx) })
	for _, d := range dbserver.Databases() {
		running.Go(func() { m.Keep(ctx, d) })
		running.Go(func() { m.WatchExpiry(ctx, d) })
	}
	err = l.Serve(ctx)
	cancel()
	return err
}

// lookForPeers is how often the connections to new nodes are made.
const lookForPeers = time.Second
