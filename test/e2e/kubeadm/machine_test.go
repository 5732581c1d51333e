package kubeadm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/node"
)

// kubeletConfig is the drop-in of each machine's kubelet. Nothing else of what kubeadm gives the kubelet is changed.
func kubeletConfig(n *node.Node) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
# There is no systemd.
cgroupDriver: cgroupfs
# The host may have version 1 alone.
failCgroupV1: false
# All machines have the host's cgroups.
cgroupRoot: /%s
# All machines have the host's disk.
evictionHard: {imagefs.available: "0%%", memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`, n.Config.Cgroup)
}

// kubeadmConfig is the file that kubeadm init gets. Everything else has kubeadm's defaults.
func kubeadmConfig(version, podSubnet string) string {
	return fmt.Sprintf(`apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
imageRepository: %s
kubernetesVersion: %s
networking: {podSubnet: %q}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
# Connection tracking of the whole host is not a machine's to set.
conntrack: {maxPerCore: 0}
`, repository, version, podSubnet)
}

// ignored is the only preflight check of kubeadm whose errors are ignored. The kernel's configuration, and the version
// of its cgroups, are the host's.
const ignored = "SystemVerification"

// inside is the host's path of a machine's file.
func inside(n *node.Node, path string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", n.PID()), path)
}

// write writes a file of a machine.
func write(n *node.Node, path, text string) error {
	path = inside(n, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing a file of %s: %w", n.Spec.Name, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing a file of %s: %w", n.Spec.Name, err)
	}
	return nil
}

// writeTools makes the directory of operators' commands. They do what the page says. What belongs to these machines
// alone is added here.
func (b *bed) writeTools(ctx context.Context) error {
	version, err := b.version(ctx)
	if err != nil {
		return err
	}
	const programs = "/opt/northbound/bin"
	for name, text := range map[string]string{
		"kubeadm.yaml": kubeadmConfig(version, b.podSubnet),
		"kubelet-unit": kubeletUnit,
		"systemctl":    systemctl,
		"kubeadm": fmt.Sprintf(`#!/bin/sh
ignored=--ignore-preflight-errors=%s
case $1 in
init) set -- "$@" $ignored --config=%s ;;
join) set -- "$@" $ignored ;;
esac
exec %s/kubernetes/kubeadm "$@"
`, ignored, filepath.Join(b.tools, "kubeadm.yaml"), programs),
		"kubectl":            fmt.Sprintf("#!/bin/sh\nexec %s/sandbox kubectl-in-place \"$@\"\n", programs),
		"kubectl-northbound": fmt.Sprintf("#!/bin/sh\nexec %s/kubectl-northbound \"$@\"\n", programs),
		"helm": fmt.Sprintf(`#!/bin/sh
export HELM_CACHE_HOME=%[1]s/helm HELM_CONFIG_HOME=%[1]s/helm HELM_DATA_HOME=%[1]s/helm
case $1 in install) set -- "$@" --values=%[1]s/values.yaml ;; esac
exec %[2]s/helm "$@"
`, b.Options.State(), programs),
	} {
		if err := os.MkdirAll(b.tools, 0o755); err != nil {
			return fmt.Errorf("writing the operator's commands: %w", err)
		}
		if err := os.WriteFile(filepath.Join(b.tools, name), []byte(text), 0o755); err != nil {
			return fmt.Errorf("writing the operator's commands: %w", err)
		}
	}
	return nil
}

// try runs commands on a machine, as an administrator of the cluster does.
func (b *bed) try(ctx context.Context, n *node.Node, commands string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := n.Command(ctx, "env", "-C", b.Options.State(), "bash", "-euo", "pipefail", "-c", commands)
	for i, v := range cmd.Env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			cmd.Env[i] = "PATH=" + b.tools + ":" + path
		}
	}
	cmd.Env = append(cmd.Env, "KUBECONFIG=/etc/kubernetes/admin.conf")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// does runs commands on a machine, which must succeed. It returns what they printed.
func (b *bed) does(t *testing.T, n *node.Node, commands string) string {
	t.Helper()
	started := time.Now()
	out, err := b.try(t.Context(), n, commands)
	t.Logf("%5.1f s  %s$ %s", time.Since(started).Seconds(), n.Spec.Name, commands)
	if err != nil {
		t.Fatalf("%s$ %s\n%s%v", n.Spec.Name, commands, out, err)
	}
	return out
}

// explain logs what may tell why the test failed.
func (b *bed) explain(ctx context.Context, t *testing.T) {
	for i, n := range b.Nodes {
		ask := "ctr --namespace k8s.io tasks list; tail -n 30 /var/log/kubelet.log"
		if i == 0 {
			ask = "kubectl get nodes,pods -A -o wide; kubectl get events -A --sort-by=.lastTimestamp | tail -n 40; " + ask
		}
		out, err := b.try(ctx, n, ask)
		t.Logf("%s: %v\n%s", n.Spec.Name, err, out)
	}
}
