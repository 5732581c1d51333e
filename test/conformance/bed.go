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
	"github.com/northbound-net/northbound/test/sandbox/image"
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
// default, and prepares it for what is tested.
func up(ctx context.Context, o Options, nodes int, prepare func(*bed, context.Context, *progress.Log) error) (*bed,
	error) {
	log := progress.New(o.Out)
	if err := rootfs.Install(ctx, log, hostPackages()...); err != nil {
		return nil, err
	}
	options := sandbox.Options{
		Name: o.Sandbox, OVN: o.OVN, DualStack: true, Nodes: nodes, Gateways: nodes, BinDir: o.Bin, Replace: true,
		Progress:    o.Out,
		Controllers: "*", ClusterDNS: []netip.Addr{netip.MustParseAddr(dnsAddress)},
	}
	options.Install = os.Getenv(sandbox.InstallVariable)
	if options.RunsChart() { // the first node is for the control plane
		options.Nodes, options.Gateways = nodes+1, nodes+1
	}
	c, err := sandbox.Up(ctx, options)
	if err != nil {
		return nil, err
	}
	b := &bed{Cluster: c}
	preparing, cancel := context.WithTimeoutCause(ctx, sandbox.Timeout,
		fmt.Errorf("it took longer than %v", sandbox.Timeout))
	defer cancel()
	if err := prepare(b, preparing, log); err != nil {
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

// prepareSpecs provides what specs need: cluster DNS, and the images that they use.
func (b *bed) prepareSpecs(ctx context.Context, log *progress.Log) error {
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
	if b.RunsChart() { // as kubeadm does; specs leave such a node out, and it keeps its pods
		if out, err := b.Kubectl(ctx, "taint", "node", b.Nodes[0].Spec.Name,
			"node-role.kubernetes.io/control-plane:NoSchedule").CombinedOutput(); err != nil {
			return fmt.Errorf("tainting the node of the control plane: %w: %s", err, out)
		}
	}
	if err := b.reachPods(ctx); err != nil {
		return fmt.Errorf("letting the API server reach pods: %w", err)
	}
	// hostPort needs portmap, which the product chains if it is installed. A pod of the chart sees this directory alone.
	for _, n := range b.Nodes {
		if _, err := n.Run(ctx, "cp", "/usr/lib/cni/portmap", member.CNIBinDir+"/portmap"); err != nil {
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
	known, names, err := specImages(ctx, b.Options.BinDir, filepath.Join(b.Options.BinDir, program))
	if err != nil {
		return err
	}
	return b.load(ctx, known, names)
}

// load makes images, and has all nodes know them under their names.
func (b *bed) load(ctx context.Context, known map[string]image.Image, names map[string][]string) error {
	images, err := writeImages(filepath.Join(b.Options.State(), "images"), known, names)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range b.Nodes {
		g.Go(func() error {
			for _, i := range images {
				if _, err := n.Run(ctx, "ctr", "-n", "k8s.io", "images", "import", i.file); err != nil {
					return err
				}
				for _, name := range i.names[1:] {
					if _, err := n.Run(ctx, "ctr", "-n", "k8s.io", "images", "tag", i.names[0], name); err != nil {
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
	if err := b.kubectlDo(ctx, dnsManifest, "apply", "--filename=-"); err != nil {
		return fmt.Errorf("applying the manifest of cluster DNS: %w", err)
	}
	err := b.kubectlDo(ctx, "", "rollout", "status", "--namespace=kube-system", "deployment/coredns", "--timeout=2m")
	if err != nil {
		return fmt.Errorf("waiting for cluster DNS: %w", err)
	}
	return nil
}

// kubectlDo runs kubectl with an input. An error has what it printed.
func (b *bed) kubectlDo(ctx context.Context, input string, args ...string) error {
	cmd := b.Kubectl(ctx, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
