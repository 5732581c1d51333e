package conformance

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
)

//go:embed dns.yaml
var dnsManifest string

// dnsAddress is the ClusterIP in dnsManifest.
const dnsAddress = "10.96.0.10"

// bed is the cluster that the specs run on.
type bed struct {
	*sandbox.Cluster
	kubectl string // program that specs run
}

// zones is the number of zones of the nodes.
const zones = 3

// up starts a dual-stack cluster in which all nodes are gateways, with every controller that Kubernetes runs by
// default, cluster DNS, and the images that specs use.
func up(ctx context.Context, o Options, nodes int) (*bed, error) {
	log := progress.New(o.Out)
	if err := rootfs.Install(ctx, log, hostPackages()...); err != nil {
		return nil, err
	}
	c, err := sandbox.Up(ctx, sandbox.Options{
		Name: o.Sandbox, OVN: o.OVN, DualStack: true, Nodes: nodes, Gateways: nodes, BinDir: o.Bin, Replace: true,
		Progress:    o.Out,
		Controllers: "*", ClusterDNS: []netip.Addr{netip.MustParseAddr(dnsAddress)},
	})
	if err != nil {
		return nil, err
	}
	b := &bed{Cluster: c}
	if err := b.prepare(ctx, log); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the cluster: %w", err), b.down(ctx))
	}
	return b, nil
}

// down removes the cluster, even if ctx has ended.
func (b *bed) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return b.Down(ctx)
}

func (b *bed) prepare(ctx context.Context, log *progress.Log) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sandbox.Timeout, fmt.Errorf("it took longer than %v", sandbox.Timeout))
	defer cancel()
	b.kubectl = filepath.Join(b.Options.State(), "kubectl")
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' kubectl-in-place \"$@\"\n", filepath.Join(b.Options.BinDir, "sandbox"))
	if err := os.WriteFile(b.kubectl, []byte(script), 0o755); err != nil {
		return fmt.Errorf("writing kubectl: %w", err)
	}
	for i, n := range b.Nodes { // some specs need zones
		if out, err := b.Kubectl(ctx, "label", "node", n.Spec.Name, fmt.Sprintf("%s=z%d", corev1.LabelTopologyZone,
			i%zones+1)).CombinedOutput(); err != nil {
			return fmt.Errorf("labelling the nodes with zones: %w: %s", err, out)
		}
	}
	if err := b.reachPods(ctx); err != nil {
		return fmt.Errorf("letting the API server reach pods: %w", err)
	}
	for _, n := range b.Nodes { // hostPort needs portmap, which the product chains if it is installed
		if _, err := n.Run(ctx, "ln", "--symbolic", "/usr/lib/cni/portmap", member.CNIBinDir+"/portmap"); err != nil {
			return err
		}
	}
	step := log.Begin("images that the specs ask for")
	if err := step.End(b.loadImages(ctx)); err != nil {
		return err
	}
	step = log.Begin("cluster DNS")
	return step.End(b.startDNS(ctx))
}

func (b *bed) loadImages(ctx context.Context) error {
	images, err := Images(ctx, filepath.Join(b.Options.State(), "images"), b.Options.BinDir,
		filepath.Join(b.Options.BinDir, program))
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range b.Nodes {
		g.Go(func() error {
			for _, i := range images {
				if _, err := n.Run(ctx, "ctr", "-n", "k8s.io", "images", "import", i.File); err != nil {
					return err
				}
				for _, name := range i.Names[1:] {
					if _, err := n.Run(ctx, "ctr", "-n", "k8s.io", "images", "tag", i.Names[0], name); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (b *bed) startDNS(ctx context.Context) error {
	apply := b.Kubectl(ctx, "apply", "--filename=-")
	apply.Stdin = strings.NewReader(dnsManifest)
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("applying the manifest of cluster DNS: %w: %s", err, out)
	}
	wait := b.Kubectl(ctx, "rollout", "status", "--namespace=kube-system", "deployment/coredns", "--timeout=2m")
	if out, err := wait.CombinedOutput(); err != nil {
		return fmt.Errorf("waiting for cluster DNS: %w: %s", err, out)
	}
	return nil
}
