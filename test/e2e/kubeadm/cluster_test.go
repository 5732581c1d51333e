package kubeadm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// join has all machines but the first join the cluster, with the command that another one prints. Meanwhile all of them
// get the product's image.
func (b *bed) join(t *testing.T, prints string) {
	t.Helper()
	var command string
	for line := range strings.Lines(b.does(t, b.Nodes[0], prints)) {
		if strings.HasPrefix(line, "kubeadm join ") {
			command = line
		}
	}
	if command == "" {
		t.Fatalf("%s printed no command", prints)
	}
	var g errgroup.Group
	for _, n := range b.Nodes[1:] {
		g.Go(func() error {
			out, err := b.try(t.Context(), n, command)
			if err != nil {
				return fmt.Errorf("%s joins: %w\n%s", n.Spec.Name, err, out)
			}
			return nil
		})
	}
	g.Go(func() (err error) {
		b.image, err = b.LoadImage(t.Context(), b.Options.BinDir)
		return err
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	admin, err := os.ReadFile(inside(b.Nodes[0], "/etc/kubernetes/admin.conf"))
	if err == nil {
		err = os.MkdirAll(b.Control.Dir(), 0o755)
	}
	if err == nil {
		err = os.WriteFile(b.Control.AdminKubeconfig(), admin, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// defaults checks that the cluster is what the page says of kubeadm's defaults.
func (b *bed) defaults(t *testing.T) {
	t.Helper()
	for _, n := range b.Nodes {
		machines.Eventually(t, n.Spec.Name+" waits for a network plugin", func(ctx context.Context) string {
			out, err := b.Kubectl(ctx, "get", "node", n.Spec.Name, "--output",
				`jsonpath={.status.conditions[?(@.type=="Ready")]}`).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "cni plugin not initialized") {
				return fmt.Sprintf("%v: condition Ready is %s, want that there is no network plugin", err, out)
			}
			return ""
		})
		text, err := os.ReadFile(inside(n, "/etc/kubernetes/kubelet.conf"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"server: https://172.30.0.1:6443", "kubelet-client-current.pem"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: the kubelet's kubeconfig does not have %q", n.Spec.Name, want)
			}
		}
		if strings.Contains(string(text), "client-key-data") {
			t.Errorf("%s: the kubelet's kubeconfig has its private key, which pods of the chart then see", n.Spec.Name)
		}
	}
	for path, want := range map[string]string{
		"{.spec.taints[*].key}": "node-role.kubernetes.io/control-plane",
		"{.metadata.labels}":    "node-role.kubernetes.io/control-plane",
	} {
		if got := machines.Kubectl(t, b.Cluster, "", "get", "node", "n1", "--output", "jsonpath="+path); !strings.Contains(
			got, want) {
			t.Errorf("%s of Node n1 is %s, want %s", path, got, want)
		}
	}
}

// install packages the chart, and runs the page's commands.
func (b *bed) install(t *testing.T, commands string) {
	t.Helper()
	colon := strings.LastIndex(b.image, ":")
	values, err := yaml.Marshal(map[string]any{
		"openvswitch": b.switches(),
		"image":       map[string]any{"repository": b.image[:colon], "tag": b.image[colon+1:]},
		"node":        map[string]any{"datapathType": "netdev"}, // the kernel's module may be missing
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(b.Options.State(), "values.yaml"), values, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(b.Options.State(), "bin")
	if _, err := b.Helm(t.Context(), "package", b.Chart(), "--destination", dir); err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "northbound-*.tgz"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("helm package made %v, %v; want one file", packages, err)
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(packages[0]), "northbound-"), ".tgz")
	b.does(t, b.Nodes[0], strings.ReplaceAll(commands, "VERSION", version))
}

// switches is the chart's value openvswitch. The machines may have no kernel module.
func (b *bed) switches() map[string]any {
	if b.Options.SwitchPods {
		return map[string]any{"inPods": true, "tunnelInterface": underlay.TunnelUplink}
	}
	return map[string]any{"inPods": false} // they have one NIC
}

// works runs the page's commands that tell whether all is well, and checks what pods and Services are there for.
func (b *bed) works(t *testing.T, commands string) {
	t.Helper()
	// The doctor measures the paths between nodes that have just met.
	machines.Eventually(t, "all is well", func(ctx context.Context) string {
		if out, err := b.try(ctx, b.Nodes[0], commands); err != nil {
			return fmt.Sprintf("%v\n%s", err, out)
		}
		return ""
	})
	service := "10.111.200.7" // in kubeadm's default range
	pods := machines.EchoPods(t, b.Cluster, service)
	machines.EchoAnswers(t, b.Cluster, pods)
	for _, pod := range pods {
		machines.Eventually(t, pod+" asks by name", func(ctx context.Context) string {
			const script = "nslookup echo.default.svc.cluster.local && wget -q -T 5 -O - http://echo/"
			out, err := b.Kubectl(ctx, "exec", pod, "--", "sh", "-c", script).CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			who, _, _ := strings.Cut(lines[len(lines)-1], " ")
			if err != nil || !strings.Contains(string(out), "10.96.0.10") || !strings.Contains(string(out), service) ||
				!slices.Contains(pods, who) {
				return fmt.Sprintf("want cluster DNS at 10.96.0.10 to say %s, and an answer of one of %v: %v\n%s", service, pods,
					err, out)
			}
			return ""
		})
	}
	if err := b.CheckSwitches(t.Context()); err != nil {
		t.Error(err)
	}
}
