// Command sandbox-apiserver runs etcd, kube-apiserver, the controllers that pods and services need, and kube-scheduler
// in one process: a complete Kubernetes control plane for tests that is ready in about three seconds.
//
// --dir has the certificates and keys that package pki writes: ca.crt, apiserver.crt, apiserver.key,
// kubelet-client.crt, kubelet-client.key, sa.key, and admin.kubeconfig for its own controllers. etcd's data is there,
// too.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// config is the command line.
type config struct {
	dir          string
	bind         string
	advertise    string
	port         int
	serviceCIDRs string
	authorizers  string
	controllers  string
	scheduler    bool
	readyFile    string
	extra        []string // kube-apiserver flags
}

func (c config) file(name string) string { return filepath.Join(c.dir, name) }

func main() {
	log.SetFlags(log.Lmicroseconds)
	app := &cli.App{
		Name:  "sandbox-apiserver",
		Usage: "a Kubernetes control plane in one process, for tests",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Required: true, Usage: "`DIR` with certificates, and for etcd's data"},
			&cli.StringFlag{Name: "bind", Value: "127.0.0.1", Usage: "`ADDRESS` to listen on"},
			&cli.StringFlag{Name: "advertise", Usage: "`ADDRESS` of the kubernetes service's endpoint (default: --bind)"},
			&cli.IntFlag{Name: "port", Value: 6443, Usage: "`PORT` to listen on"},
			&cli.StringFlag{Name: "service-cidrs", Value: "10.96.0.0/16", Usage: "`CIDR`,... of ClusterIPs, two for dual stack"},
			&cli.StringFlag{Name: "authorization-mode", Value: "Node,RBAC", Usage: "`MODES` of kube-apiserver"},
			&cli.StringFlag{Name: "controllers", Value: strings.Join(defaultControllers(), ","),
				Usage: "`NAMES` of the controllers to run; empty for none"},
			&cli.BoolFlag{Name: "scheduler", Usage: "run kube-scheduler"},
			&cli.StringFlag{Name: "ready-file", Usage: "`FILE` made when the API server is ready"},
			&cli.StringSliceFlag{Name: "apiserver-arg", Usage: "further `FLAG` of kube-apiserver"},
		},
		Action: func(c *cli.Context) error {
			conf := config{
				dir: c.String("dir"), bind: c.String("bind"), advertise: c.String("advertise"), port: c.Int("port"),
				serviceCIDRs: c.String("service-cidrs"), authorizers: c.String("authorization-mode"),
				controllers: c.String("controllers"), scheduler: c.Bool("scheduler"),
				readyFile: c.String("ready-file"), extra: c.StringSlice("apiserver-arg"),
			}
			if conf.advertise == "" {
				conf.advertise = conf.bind
			}
			return run(c.Context, conf)
		},
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := app.RunContext(ctx, os.Args)
	stop()
	if err != nil {
		log.Fatalf("sandbox-apiserver: %v", err)
	}
}

// defaultControllers are the controllers that pods, services, the chart and garbage collection need.
func defaultControllers() []string {
	return []string{
		"endpointslice-controller", "namespace-controller", "serviceaccount-controller",
		"root-ca-certificate-publisher-controller",
		"replicaset-controller", "deployment-controller", "daemonset-controller", "statefulset-controller", "job-controller",
		"disruption-controller", "pod-garbage-collector-controller",
		"garbage-collector-controller", "node-lifecycle-controller", "taint-eviction-controller",
	}
}

// run works until ctx ends or a component fails.
func run(ctx context.Context, c config) error {
	start := time.Now()
	// Several components in one process may apply the same logging settings.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	etcd, err := startEtcd(c.file("etcd"))
	if err != nil {
		return err
	}
	defer etcd.Close()
	errs := make(chan error, 3)
	api := make(chan struct{})
	go func() {
		defer close(api)
		errs <- runAPIServer(ctx, c, etcd.Config().ListenClientUrls[0].String())
	}()
	if err := waitReady(ctx, c, errs); err != nil {
		return err
	}
	log.Printf("API server ready after %v", time.Since(start).Round(time.Millisecond))
	if c.controllers != "" {
		go func() { errs <- runControllers(ctx, c) }()
	}
	if c.scheduler {
		go func() { errs <- runScheduler(ctx, c) }()
	}
	if c.readyFile != "" {
		if err := os.WriteFile(c.readyFile, nil, 0o644); err != nil {
			return fmt.Errorf("saying that the API server is ready: %w", err)
		}
	}
	select {
	case err = <-errs:
		if err == nil {
			err = errors.New("a component has ended")
		}
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		return err
	}
	select { // stop the API server before its etcd
	case <-api:
	case <-time.After(10 * time.Second):
	}
	return nil
}
