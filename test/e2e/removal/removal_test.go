package removal

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// The page that an operator reads, and the directory that its paths begin in. The test runs its commands.
const (
	page       = "../../../docs/operate/service.md"
	repository = "../../.."
)

// bed is a cluster whose daemons are no pods. One node is a gateway.
type bed struct {
	*sandbox.Cluster
	before map[string]string // what each node and the API server had before the installation
}

// TestRemoval uninstalls the nodes, the master, and what is at the API server, with the commands of the page.
func TestRemoval(t *testing.T) {
	b := &bed{}
	b.Cluster = machines.Up(t, sandbox.Options{Name: "removal", Nodes: 2, Gateways: 1, DualStack: true,
		BeforeInstall: func(ctx context.Context, c *sandbox.Cluster) (err error) {
			if err := machines.Registered(ctx, c); err != nil {
				return err
			}
			b.before, err = machines.Look(ctx, c)
			return err
		}})
	pods := machines.EchoPods(t, b.Cluster, "10.96.200.7", "fd02::6f")
	machines.EchoAnswers(t, b.Cluster, pods)
	b.changed(t)
	machines.Kubectl(t, b.Cluster, "", "delete", "pods,services", "--selector", "app=echo")
	machines.Kubectl(t, b.Cluster, "", "delete", "service", "echo")

	for _, n := range b.Nodes {
		for _, block := range machines.Blocks(t, page, "## Uninstall a node") {
			b.does(t, n.Member, strings.ReplaceAll(block, "NODE", n.Spec.Name))
		}
	}
	b.does(t, b.Control.Member, b.inline(t))
	b.giveKubeconfig(t)
	for _, block := range machines.Blocks(t, page, "## Uninstall everything") {
		b.does(t, b.Control.Member, block)
	}
	for _, n := range b.Nodes { // they register the Nodes again, which were deleted
		if err := b.Restart(t.Context(), n.Spec.Name+"/"+node.Kubelet, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	b.asBefore(t)
}

// inline is the command of the section about the master, which is in its text.
func (b *bed) inline(t *testing.T) string {
	t.Helper()
	text, err := machines.Section(page, "## Uninstall the master")
	if err != nil {
		t.Fatal(err)
	}
	_, command, ok := strings.Cut(text, "Run `")
	command, _, _ = strings.Cut(command, "`")
	if !ok || command == "" {
		t.Fatalf("the page says nothing to run: %s", text)
	}
	return command
}

// changed checks that the comparison would see what a node that works has.
func (b *bed) changed(t *testing.T) {
	t.Helper()
	now, err := machines.Look(t.Context(), b.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range b.Nodes {
		got := machines.Differing(now["node "+n.Spec.Name], b.before["node "+n.Spec.Name]) +
			machines.Differing(now["nftables of "+n.Spec.Name], b.before["nftables of "+n.Spec.Name])
		for _, want := range []string{"br-int", "k8s-" + n.Spec.Name, "ovn-remote", "10-ovn-kubernetes.conflist",
			"table inet northbound", "proto 78", "ovn-kubernetes"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s of node %s is not seen:\n%s", want, n.Spec.Name, got)
			}
		}
	}
}

// does runs commands of the page, each of which must succeed: kubectl as an administrator, in the repository; the
// others on a machine. Machines have no systemd: see stop.
func (b *bed) does(t *testing.T, m *member.Member, block string) {
	t.Helper()
	for _, line := range strings.Split(block, "\n") {
		fields := strings.Fields(line)
		var out []byte
		var err error
		switch fields[0] {
		case "kubectl":
			cmd := b.Kubectl(t.Context(), fields[1:]...)
			cmd.Dir = repository
			out, err = cmd.CombinedOutput()
		case "systemctl":
			err = b.stop(t.Context(), m, fields[1:])
		default:
			out, err = m.Command(t.Context(), "env", "-C", "/", "sh", "-ec", line).CombinedOutput()
		}
		t.Logf("%s$ %s\n%s", m.Spec.Name, line, out)
		if err != nil {
			t.Fatalf("%s$ %s\n%s%v", m.Spec.Name, line, out, err)
		}
	}
}

// stop does what `systemctl disable --now` does to a service: it ends a process with SIGTERM, or with what the unit of
// OVN's package says.
func (b *bed) stop(ctx context.Context, m *member.Member, arguments []string) error {
	services, ok := strings.CutPrefix(strings.Join(arguments, " "), "disable --now ")
	if !ok {
		return fmt.Errorf("systemctl %s: want disable --now", strings.Join(arguments, " "))
	}
	for _, s := range strings.Fields(services) {
		var err error
		switch s {
		case "ovnkube-node":
			err = m.StopService(ctx, node.Agent, syscall.SIGTERM)
		case "ovnkube-master":
			err = m.StopService(ctx, control.Master, syscall.SIGTERM)
		case "ovn-controller": // ExecStop of ovn-controller.service
			_, err = m.Run(ctx, "/usr/share/ovn/scripts/ovn-ctl", "stop_controller", "--no-monitor")
		default:
			err = fmt.Errorf("no such service here")
		}
		if err != nil {
			return fmt.Errorf("stopping %s: %w", s, err)
		}
	}
	return nil
}

// giveKubeconfig puts the administrator's kubeconfig where kubeadm has it.
func (b *bed) giveKubeconfig(t *testing.T) {
	t.Helper()
	if _, err := b.Control.Run(t.Context(), "install", "-D", "-m", "600", b.Control.AdminKubeconfig(),
		"/etc/kubernetes/admin.conf"); err != nil {
		t.Fatal(err)
	}
}

// asBefore waits until nodes and API server are as they were before the installation.
func (b *bed) asBefore(t *testing.T) {
	t.Helper()
	machines.Eventually(t, "nodes and API server as they were before the installation", func(ctx context.Context) string {
		if err := machines.Registered(ctx, b.Cluster); err != nil {
			return err.Error()
		}
		now, err := machines.Look(ctx, b.Cluster)
		if err != nil {
			return err.Error()
		}
		var out []string
		for what, text := range now {
			for line := range strings.Lines(machines.Differing(text, b.before[what])) {
				if !b.operators(line) {
					out = append(out, what+": "+strings.TrimSpace(line))
				}
			}
		}
		slices.Sort(out)
		return strings.Join(out, "\n")
	})
	// The chassis of both nodes are gone, and so are their switches.
	for command, list := range map[string]func(context.Context, ...string) (string, error){
		"ovn-nbctl ls-list": b.NBCtl, "ovn-sbctl show": b.SBCtl,
	} {
		out, err := list(t.Context(), strings.Fields(command)[1:]...)
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		for _, n := range b.Nodes {
			if strings.Contains(out, n.Spec.Name) {
				t.Errorf("%s still has %s:\n%s", command, n.Spec.Name, out)
			}
		}
	}
}

// operators is true for a difference that an operator has made, and not Northbound. The sandbox installs the plugin
// before, and writes the settings into another file than the page removes. It applies the manifests before, too.
func (b *bed) operators(line string) bool {
	line = strings.TrimSpace(line)
	return line == "- ovn_cni" || line == "+ ovn_k8s.conf" || strings.HasPrefix(line, "- ") &&
		strings.HasPrefix(filepath.Base(line), "ovnkube-")
}
