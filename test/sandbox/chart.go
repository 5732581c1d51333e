package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/test/release/image"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// Values of Options.Install for a cluster whose OVN databases, masters and agents are pods of the Helm chart.
const (
	InstallChart    = "chart"    // Helm installs it
	InstallManifest = "manifest" // Helm only makes a manifest of it, which kubectl applies
)

// InstallVariable is the environment variable that sets Options.Install for sandboxes that leave it empty.
const InstallVariable = "SANDBOX_INSTALL"

// Namespace is where the chart installs its objects.
const Namespace = "ovn-kubernetes"

// ReleaseName is the name under which Helm knows what the sandbox has installed.
const ReleaseName = "northbound"

// RunsChart tells whether the databases, masters and agents are pods of the chart.
func (c *Cluster) RunsChart() bool { return c.Options.RunsChart() }

// RunsChart is that of the cluster.
func (o Options) RunsChart() bool { return o.Install == InstallChart || o.Install == InstallManifest }

// chartImage writes the container image into a file of the sandbox, and returns the file and the image's name. The
// image has the programs of a directory, and those of Debian's root filesystem in source.
func (c *Cluster) chartImage(ctx context.Context, source, programs string) (file, name string, err error) {
	work, err := os.MkdirTemp(c.Options.State(), "image-")
	if err != nil {
		return "", "", fmt.Errorf("making the container image: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	s := image.Source{Root: source, Programs: programs}
	if err := s.Identify(ctx, filepath.Join(s.Programs, "ovnkube"), os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return "", "", err
	}
	i, err := image.Build(s, work)
	if err != nil {
		return "", "", fmt.Errorf("making the container image: %w", err)
	}
	file = filepath.Join(c.Options.State(), "northbound-"+s.Version+".oci.tar")
	return file, i.Name, i.Archive(file, work)
}

// LoadImage gives the nodes a further container image, with the programs of a directory. It returns the image's name.
func (c *Cluster) LoadImage(ctx context.Context, programs string) (name string, err error) {
	source, err := provide(ctx, c.Options, progress.New(io.Discard))
	if err != nil {
		return "", err
	}
	file, name, err := c.chartImage(ctx, source, programs)
	if err != nil {
		return "", err
	}
	for _, n := range c.Nodes {
		if err := n.Load(ctx, file); err != nil {
			return "", err
		}
	}
	return name, nil
}

// values are the chart's values for this cluster. Everything else has its default.
func (c *Cluster) values(imageName string) map[string]any {
	repository, tag := imageName[:strings.LastIndex(imageName, ":")], imageName[strings.LastIndex(imageName, ":")+1:]
	agent := append([]string{"--bridge-mappings=physnet:" + node.PhysicalBridge}, flags(c.Options.AgentArgs)...)
	if c.Options.Gateways > 0 {
		agent = append(agent, "--gateway-mode=shared", "--gateway-interface="+node.PhysicalBridge,
			"--gateway-node-label="+node.GatewayLabel)
	}
	openvswitch := map[string]any{"inPods": c.Options.SwitchPods}
	if c.Options.SwitchPods {
		openvswitch["tunnelInterface"] = underlay.TunnelUplink
		agent = flags(c.Options.AgentArgs)
	}
	values := map[string]any{
		"image":   map[string]any{"repository": repository, "tag": tag},
		"network": map[string]any{"clusterSubnets": strings.Split(c.Options.ClusterSubnets(), ","), "mtu": 1400},
		"master":  map[string]any{"args": flags(c.Options.MasterArgs)},
		"node":    map[string]any{"datapathType": "netdev", "args": agent},
	}
	// A chart of an earlier version does not know this value.
	if _, err := os.Stat(filepath.Join(c.Chart(), "templates/openvswitch.yaml")); err == nil {
		values["openvswitch"] = openvswitch
	}
	if c.Options.Monitoring {
		values["monitoring"] = map[string]any{"enabled": true}
	}
	return values
}

// flags joins flags and their values, which may be arguments of their own: each of the chart's is a flag.
func flags(args []string) []string {
	out := []string{}
	for _, a := range args {
		if last := len(out) - 1; !strings.HasPrefix(a, "--") && last >= 0 {
			out[last] += "=" + a
			continue
		}
		out = append(out, a)
	}
	return out
}

// installChart makes the first node one of the control plane, and installs the chart.
func (c *Cluster) installChart(ctx context.Context, imageName string, step *progress.Step) error {
	if err := c.labelControlPlane(ctx, step); err != nil {
		return err
	}
	text, err := yaml.Marshal(c.values(imageName))
	if err != nil {
		return fmt.Errorf("writing the chart's values: %w", err)
	}
	file := filepath.Join(c.Options.State(), "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("writing the chart's values: %w", err)
	}
	if c.Options.Install == InstallManifest {
		return c.applyManifest(ctx, file)
	}
	_, err = c.Helm(ctx, "install", ReleaseName, c.Chart(), "--namespace", Namespace, "--create-namespace", "--values",
		file)
	return err
}

// applyManifest installs the chart without Helm's knowing. The file has its values.
func (c *Cluster) applyManifest(ctx context.Context, values string) error {
	manifest, err := c.Helm(ctx, "template", ReleaseName, c.Chart(), "--namespace", Namespace, "--include-crds",
		"--values", values)
	if err != nil {
		return err
	}
	file := filepath.Join(c.Options.State(), "northbound.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return fmt.Errorf("writing the chart's manifest: %w", err)
	}
	if _, err := run(c.Kubectl(ctx, "create", "namespace", Namespace)); err != nil {
		return err
	}
	_, err = run(c.Kubectl(ctx, "apply", "--server-side", "--filename", file))
	return err
}

// Rollout waits until the chart's pods are ready.
func (c *Cluster) Rollout(ctx context.Context) error {
	const nodes = "daemonset/ovnkube-node"
	inNamespace := func(args ...string) (string, error) {
		return run(c.Kubectl(ctx, append([]string{"--namespace", Namespace}, args...)...))
	}
	for _, object := range []string{"deployment/ovnkube-signer", "daemonset/ovn-db", "daemonset/ovnkube-master"} {
		if _, err := inNamespace("rollout", "status", object); err != nil {
			return err
		}
	}
	how, err := inNamespace("get", nodes, "--output", "jsonpath={.spec.updateStrategy.type}")
	if err != nil {
		return err
	}
	if how != "OnDelete" {
		_, err = inNamespace("rollout", "status", nodes)
		return err
	}
	// An upgrade replaces none of them.
	_, err = inNamespace("wait", nodes, fmt.Sprintf("--for=jsonpath={.status.numberReady}=%d", len(c.Nodes)))
	return err
}

// Chart is the chart's directory.
func (c *Cluster) Chart() string { return filepath.Join(c.Options.BinDir, "chart") }

// labelControlPlane waits for the first node's kubelet to register, and labels its Node as kubeadm does.
func (c *Cluster) labelControlPlane(ctx context.Context, step *progress.Step) error {
	client, err := c.Control.Client()
	if err != nil {
		return err
	}
	patch := []byte(`{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`)
	for {
		_, err := client.CoreV1().Nodes().Patch(ctx, node.Name(1), types.MergePatchType, patch, metav1.PatchOptions{})
		if err == nil {
			return nil
		}
		step.Detail("waiting for Node %s", node.Name(1))
		select {
		case <-ctx.Done():
			return fmt.Errorf("labelling Node %s: %w", node.Name(1), errors.Join(context.Cause(ctx), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Helm runs helm as the administrator and returns what it printed. It sees the host's files.
func (c *Cluster) Helm(ctx context.Context, args ...string) (string, error) {
	cmd := c.Control.NetworkCommand(ctx, append([]string{filepath.Join(c.Options.BinDir, "helm")}, args...)...)
	state := filepath.Join(c.Options.State(), "helm")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Control.AdminKubeconfig(), "HELM_CACHE_HOME="+state,
		"HELM_CONFIG_HOME="+state, "HELM_DATA_HOME="+state)
	return run(cmd)
}

// inPod runs a program in a container of the chart's pods and returns what it printed.
func (c *Cluster) inPod(ctx context.Context, pod, container string, argv ...string) (string, error) {
	return run(c.Kubectl(ctx, append([]string{"--namespace", Namespace, "exec", pod, "--container", container, "--"},
		argv...)...))
}

// run runs a program and returns its standard output. An error has its standard error.
func run(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("running %q: %w: %s", strings.Join(cmd.Args, " "), err,
			strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}
