package kubeadm

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/image"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
)

// migrate is what an operator with flannel reads.
const migrate = "../../../docs/operate/migrate.md"

//go:embed testdata/flannel.yaml
var flannelManifest string

//go:embed testdata/workload.yaml
var workload string

// TestFlannel moves a running cluster from flannel and kube-proxy to the chart, node by node, with the page's commands.
// One node goes back in between. Meanwhile pods, nodes and Services reach each other, on either network.
func TestFlannel(t *testing.T) {
	b := startWith(t, 3, options{switchPods: true, podSubnet: "10.244.0.0/16"})
	before := machines.Steps(t, migrate, "## Before you start", 1)
	install := machines.Steps(t, migrate, "## 1. Install Northbound beside flannel", 2)
	remove := machines.Steps(t, migrate, "## 3. Remove flannel and kube-proxy", 4)
	b.flannel(t)
	m := &migration{bed: b, forth: machines.Steps(t, migrate, "## 2. Move the nodes", 4),
		back: machines.Steps(t, migrate, "### A node", 1)}
	n1 := b.Nodes[0]
	m.reach(t, "on flannel")
	m.preflight(t, "flanneld runs", "kube-proxy runs")

	web := m.requests(t)
	apart := m.between(t, 2, 1) // pods that stay on flannel for long
	b.does(t, n1, before[0])
	b.install(t, install[0])
	m.steady(t, "the installation", append(apart, web...))
	b.does(t, n1, install[1])
	m.networks(t, "10.244.", "10.244.", "10.244.")
	m.move(t, 0, m.forth[1])
	m.networks(t, "10.128.", "10.244.", "10.244.")
	m.reach(t, "n1 has moved")
	m.restartFlannel(t, 0)
	m.move(t, 0, m.back[0])
	m.networks(t, "10.244.", "10.244.", "10.244.")
	m.reach(t, "n1 has gone back")
	m.move(t, 0, m.forth[1])
	m.steady(t, "the moves of n1", append(apart, web...))

	m.move(t, 1, m.forth[1])
	together := m.between(t, 0, 1) // pods that have moved
	m.steady(t, "the move of n2", append(together, web...))
	m.move(t, 2, m.forth[1])
	m.networks(t, "10.128.", "10.128.", "10.128.")
	b.does(t, n1, remove[0])
	b.does(t, n1, remove[1])
	off := machines.Steps(t, page, "## A cluster with kube-proxy", 2)
	b.does(t, n1, off[0])
	for _, n := range b.Nodes {
		b.does(t, n, off[1])
		b.does(t, n, remove[2])
		b.clean(t, n)
		m.nothingLeft(t, n)
	}
	m.reach(t, "flannel and kube-proxy have gone")
	m.steady(t, "the rest", []*machines.Stream{together[1], web[1]}) // the pod of the other requests has moved
	nearlySteady(t, "the rest", together[:1], 2)                     // pods and links of both nodes have come and gone
	b.does(t, n1, remove[3])
}

// flannel makes the cluster that is to be moved.
func (b *bed) flannel(t *testing.T) {
	t.Helper()
	file, err := b.flannelImage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range b.Nodes {
		// As the packages for kubeadm have them.
		b.does(t, n, "cp /usr/lib/cni/bridge /usr/lib/cni/host-local /usr/lib/cni/portmap /opt/cni/bin/")
		if err := n.Load(t.Context(), file); err != nil {
			t.Fatal(err)
		}
	}
	b.does(t, b.Nodes[0], "kubeadm init")
	b.join(t, machines.Steps(t, page, "## A new cluster", 4)[1])
	machines.Kubectl(t, b.Cluster, flannelManifest, "apply", "--filename", "-")
	for _, n := range b.Nodes {
		machines.AwaitOutput(t, n, "/run/flannel/subnet.env", "ls", "/run/flannel/subnet.env")
	}
	// The kubelet would wait for a quarter of a minute before it tries again.
	b.does(t, b.Nodes[0], "kubectl --namespace kube-system delete pod --selector k8s-app=kube-dns --wait=false")
	machines.Kubectl(t, b.Cluster, workload, "apply", "--filename", "-")
	b.does(t, b.Nodes[0], `kubectl rollout status daemonset/steady --timeout=2m
kubectl rollout status deployment/web --timeout=2m
kubectl --namespace kube-system rollout status deployment/coredns --timeout=2m`)
}

// flannelImage makes the image that flannel's manifest names, and returns its file.
func (b *bed) flannelImage(ctx context.Context) (file string, err error) {
	source, err := rootfs.Ensure(ctx, b.Options.Cache, rootfs.Tested, progress.New(os.Stderr))
	if err != nil {
		return "", err
	}
	i := image.Image{
		Name: "localhost/flannel:1", Entrypoint: []string{"/opt/bin/flanneld"},
		Files: map[string]string{
			"/opt/bin/flanneld":     filepath.Join(b.programs(), "flanneld"),
			"/opt/bin/install-conf": filepath.Join(b.programs(), "install_conf"),
			"/flannel":              filepath.Join(b.programs(), "flannel"),
			"/bin/busybox":          filepath.Join(source, "usr/bin/busybox"),
		},
		Links: map[string]string{"/bin/cp": "busybox"},
	}
	if err := addIptables(ctx, &i, source); err != nil {
		return "", err
	}
	file = filepath.Join(b.Options.State(), "images", "flannel.tar")
	return file, i.Write(file)
}

// migration is a cluster on its way.
type migration struct {
	*bed
	forth []string // the page's commands to move a node
	back  []string // those that bring it back
}

// move moves a node, in either direction: the commands on the node itself differ.
func (m *migration) move(t *testing.T, i int, onNode string) {
	t.Helper()
	name := m.Nodes[i].Spec.Name
	named := func(command string) string { return strings.ReplaceAll(command, "NODE", name) }
	started := time.Now()
	m.does(t, m.Nodes[0], named(m.forth[0]))
	m.does(t, m.Nodes[i], onNode)
	deleted := time.Now()
	m.does(t, m.Nodes[0], named(m.forth[2]))
	m.does(t, m.Nodes[0], "kubectl rollout status daemonset/steady --timeout=1m")
	t.Logf("%s moved in %.1f s, its pod of a DaemonSet was away for %.1f s", name, time.Since(started).Seconds(),
		time.Since(deleted).Seconds())
	if onNode != m.forth[1] {
		return
	}
	machines.Eventually(t, "the doctor finds "+name+" well", func(ctx context.Context) string {
		if out, err := m.try(ctx, m.Nodes[0], named(m.forth[3])); err != nil {
			return fmt.Sprintf("%v\n%s", err, out)
		}
		return ""
	})
}

// restartFlannel makes flannel's pod of a node anew, which must not bring the node back to flannel.
func (m *migration) restartFlannel(t *testing.T, i int) {
	t.Helper()
	n := m.Nodes[i]
	m.does(t, m.Nodes[0], "kubectl --namespace kube-flannel delete pod --field-selector spec.nodeName="+n.Spec.Name+
		"; kubectl --namespace kube-flannel rollout status daemonset/kube-flannel-ds --timeout=1m")
	machines.AwaitOutput(t, n, "10-ovn-kubernetes.conflist\n99-flannel.conflist", "ls", "/etc/cni/net.d")
}

// networks checks the addresses of each node's pod.
func (m *migration) networks(t *testing.T, begin ...string) {
	t.Helper()
	for i, pod := range m.pods(t) {
		ip := machines.Addresses(t, m.Cluster, "pod", pod, "{.status.podIP}")[0].String()
		if !strings.HasPrefix(ip, begin[i]) {
			t.Errorf("%s on %s has address %s, want one that begins with %s", pod, m.Nodes[i].Spec.Name, ip, begin[i])
		}
	}
}

// preflight checks that preflight finds flannel and kube-proxy on each node.
func (m *migration) preflight(t *testing.T, want ...string) {
	t.Helper()
	for _, n := range m.Nodes {
		out, err := m.try(t.Context(), n, "ovnkube preflight --in-pods --datapath-type netdev")
		for _, problem := range want {
			if err == nil || !strings.Contains(out, problem) {
				t.Errorf("preflight on %s does not say %q: %v\n%s", n.Spec.Name, problem, err, out)
			}
		}
		if strings.Contains(out, "ip link delete") {
			t.Errorf("preflight on %s has commands that would cut off pods which run:\n%s", n.Spec.Name, out)
		}
	}
}

// nothingLeft checks that a node has nothing of flannel any more.
func (m *migration) nothingLeft(t *testing.T, n *node.Node) {
	t.Helper()
	out := m.does(t, n, `iptables-save | grep -i -e flannel -e cbr0 || :
ip -brief link | grep -E '^(cni0|flannel)' || :
{ ls -d /run/*; find /etc/cni /var/lib/cni /opt/cni /root; } | grep -E 'flannel|cbr0' || :`)
	if out != "" {
		t.Errorf("%s still has of flannel:\n%s", n.Spec.Name, out)
	}
	if line := m.check(t, n, "other-network"); !strings.HasPrefix(line, "ok") {
		t.Errorf("preflight on %s says %q, want ok", n.Spec.Name, line)
	}
}
