package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const (
	node     = "worker-1.example"
	mgmtLink = "k8s-worker-1.ex"
)

// bed is an agent on a node with a real Open vSwitch and kernel; the API is a
// fake and ovn-controller is the test.
type bed struct {
	client *fake.Clientset
	vs     *testkit.VSwitch
	agent  *Agent
	config config.Node

	registry *prometheus.Registry
	stop     func()
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := bareBed(t)
	b.start(t)
	return b
}

// bareBed is a bed on which no agent has run.
func bareBed(t *testing.T) *bed {
	t.Helper()
	vs := testkit.StartVSwitch(t)
	testkit.Run(t, "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0peer")
	testkit.Run(t, "ip", "addr", "add", "172.18.0.2/16", "dev", "eth0")
	testkit.Run(t, "ip", "link", "set", "eth0", "up")
	testkit.Run(t, "ip", "link", "set", "eth0peer", "up")
	c := config.DefaultNode()
	c.Name, c.DatapathType, c.SBAddress = node, config.DatapathNetdev, "ssl:172.18.0.1:6642"
	c.SBKeys = config.Keys{PrivKey: "/keys/sb.key", Cert: "/keys/sb.crt", CACert: "/keys/ca.crt"}
	c.CNIConfDir, c.CNISocketDir = "/run/net.d", "/run/cni"
	c.ClusterSubnets = []config.ClusterSubnet{
		{CIDR: netip.MustParsePrefix("10.128.0.0/14"), NodeLength: 23},
		{CIDR: netip.MustParsePrefix("fd01::/48"), NodeLength: 64},
	}
	c.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd02::/112")}
	b := &bed{vs: vs, config: c, client: fake.NewClientset()}
	b.makeNode(t, nil)
	return b
}

func (b *bed) makeNode(t *testing.T, annotations map[string]string) {
	t.Helper()
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, UID: "node-uid", Annotations: annotations},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.18.0.2"}}},
	}
	if _, err := b.client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// start runs an agent until the test ends or b.stop is called.
func (b *bed) start(t *testing.T) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	kube, err := local.New(&client.Clients{Kube: b.client}, kinds.All(), node, log)
	if err != nil {
		t.Fatal(err)
	}
	b.registry = prometheus.NewRegistry()
	b.agent, err = New(b.config, kube, b.registry, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.agent.Run(ctx) }()
	stopped := false
	b.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the agent ended with: %v", err)
		}
	}
	t.Cleanup(b.stop)
}

// grantSubnets does what the master does.
func (b *bed) grantSubnets(t *testing.T, subnets ...string) {
	t.Helper()
	var ps []netip.Prefix
	for _, s := range subnets {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	n := b.node(t)
	n.Annotations[annotation.NodeSubnets] = annotation.MarshalNodeSubnets(ps)
	if _, err := b.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) node(t *testing.T) *corev1.Node {
	t.Helper()
	n, err := b.client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	return n
}

// awaitAnnotations waits until the Node has exactly these values.
func (b *bed) awaitAnnotations(t *testing.T, want map[string]string) {
	t.Helper()
	testkit.Eventually(t, "annotations of the Node", func() string {
		have := b.node(t).Annotations
		for k, v := range want {
			if have[k] != v {
				return fmt.Sprintf("%s is %q, want %q", k, have[k], v)
			}
		}
		return ""
	})
}

// awaitOutput waits until a command prints what is wanted, blanks at line ends
// aside.
func awaitOutput(t *testing.T, want string, name string, args ...string) {
	t.Helper()
	testkit.Eventually(t, name+" "+strings.Join(args, " "), func() string {
		out, err := exec.Command(testkit.Tool(t, name), args...).CombinedOutput()
		if have := trim(string(out)); err != nil || have != trim(want) {
			return fmt.Sprintf("%v, it prints:\n%s\nwant:\n%s", err, have, trim(want))
		}
		return ""
	})
}

func trim(s string) string {
	var lines []string
	for _, l := range strings.Split(s, "\n") {
		if l = strings.Join(strings.Fields(l), " "); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n")
}

func (b *bed) awaitReady(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "readiness", func() string {
		if err := b.agent.Ready(); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (b *bed) awaitMissing(t *testing.T, part string) {
	t.Helper()
	testkit.Eventually(t, "what is missing", func() string {
		err := b.agent.Ready()
		if err == nil || !strings.Contains(err.Error(), part) {
			return fmt.Sprintf("%v, want something with %q", err, part)
		}
		return ""
	})
}

// awaitState waits until the node's state is as wanted.
func (b *bed) awaitState(t *testing.T, want string) {
	t.Helper()
	want = strings.ReplaceAll(want, "SYSTEMID", names.SystemID(node))
	awaitOutput(t, want, "sh", "-c", strings.ReplaceAll(stateScript, "@", mgmtLink))
}

// becomeReady grants subnets and does ovn-controller's part.
func (b *bed) becomeReady(t *testing.T) {
	t.Helper()
	b.grantSubnets(t, "10.128.2.0/23", "fd01:0:0:1::/64")
	testkit.Run(t, "ovs-vsctl", "--timeout=20", "wait-until", "interface", mgmtLink, "ofport>0", "--", "set", "interface",
		mgmtLink, "external_ids:ovn-installed=true")
	b.awaitReady(t)
	b.awaitState(t, wantState)
}

// changes is how many changes of the node the running agent has counted.
func (b *bed) changes(t *testing.T) int {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, f := range families {
		if f.GetName() == "northbound_node_changes_total" {
			for _, m := range f.GetMetric() {
				total += int(m.GetCounter().GetValue())
			}
		}
	}
	return total
}

// A new agent on a node that is set up changes nothing, whatever has gone
// meanwhile stays gone from nobody, and what the kernel or Open vSwitch lost
// comes back.
func TestRestarts(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.becomeReady(t)
	before := testkit.Run(t, "ovs-vsctl", "get", "interface", mgmtLink, "_uuid", "ofport")

	b.stop()
	b.start(t)
	b.awaitReady(t)
	if n := b.changes(t); n != 0 {
		t.Errorf("a restart changed %d things, want 0", n)
	}
	b.awaitState(t, wantState)
	if after := testkit.Run(t, "ovs-vsctl", "get", "interface", mgmtLink, "_uuid", "ofport"); after != before {
		t.Errorf("the management port is another after the restart: %s, before %s", after, before)
	}

	// ovs-vswitchd loses its taps when it ends; the interface comes back empty.
	b.vs.StopDaemon(t)
	testkit.Run(t, "ip", "link", "del", mgmtLink)
	b.awaitMissing(t, "interface k8s-worker-1.ex does not exist")
	b.vs.StartDaemon(t)
	b.awaitState(t, wantState)
	b.awaitReady(t)

	// The database goes and comes back.
	b.vs.StopDB(t)
	b.awaitNotReady(t)
	b.vs.StartDB(t)
	b.awaitReady(t)
	testkit.Run(t, "ovs-vsctl", "remove", "Open_vSwitch", ".", "external_ids", "ovn-remote")
	b.awaitState(t, wantState)

	// The tunnel address goes and comes back.
	testkit.Run(t, "ip", "addr", "del", "172.18.0.2/16", "dev", "eth0")
	b.awaitMissing(t, "no tunnel address")
	// The kernel drops the route whose source it was, and there is no plan.
	b.awaitState(t, strings.Replace(wantState, "169.254.169.6 via 10.128.2.1 dev k8s-worker-1.ex src 172.18.0.2\n", "", 1))
	testkit.Run(t, "ip", "addr", "add", "172.18.0.2/16", "dev", "eth0")
	b.awaitReady(t)

	// A Node that loses its subnets is not torn down; one with malformed
	// subnets neither, and that is said.
	n := b.node(t)
	n.Annotations[annotation.NodeSubnets] = `{"default":["10.128.2.7/23"]}`
	if _, err := b.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.awaitMissing(t, "10.128.2.7/23 has host bits set")
	b.awaitState(t, wantState)

	// A Node that is made again is told everything again.
	if err := b.client.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.awaitMissing(t, `there is no Node "worker-1.example"`)
	b.awaitState(t, wantState)
	b.makeNode(t, nil)
	b.awaitAnnotations(t, map[string]string{
		annotation.NodeChassisID:     names.SystemID(node),
		annotation.NodeMgmtPortMAC:   `{"default":"0a:58:0a:80:02:02"}`,
		annotation.NodePrimaryIfAddr: `{"ipv4":"172.18.0.2/16","ipv6":""}`,
	})

	// Nothing waits for the agent before the new Node has subnets.
	if got := b.node(t).Annotations[annotation.NodeAgentReady]; got != "" {
		t.Errorf("a Node without subnets says that its agent is ready: %q", got)
	}

	// Other subnets: the node moves, and nothing of the old ones stays.
	b.grantSubnets(t, "10.128.4.0/23")
	b.awaitState(t, movedState)
	b.awaitReady(t)
	b.awaitAnnotations(t, map[string]string{annotation.NodeMgmtPortMAC: `{"default":"0a:58:0a:80:04:02"}`,
		annotation.NodeAgentReady: annotation.NodeIsReady})
}

func (b *bed) awaitNotReady(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "not to be ready", func() string {
		if b.agent.Ready() == nil {
			return "it is ready"
		}
		return ""
	})
}

// A pod's port whose device has gone goes too; one with its device stays, and
// so does one that is no pod's.
func TestSweep(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.becomeReady(t)
	b.stop()
	testkit.Run(t, "ip", "link", "add", "aaaaaaaaaaaaaaa", "type", "veth", "peer", "name", "apeer")
	testkit.Run(t, "ovs-vsctl", "--no-wait", "add-port", "br-int", "aaaaaaaaaaaaaaa", "--", "set", "interface",
		"aaaaaaaaaaaaaaa", "external_ids:sandbox=aaaaaaaaaaaaaaaa1",
		"--", "add-port", "br-int", "bbbbbbbbbbbbbbb", "--", "set", "interface", "bbbbbbbbbbbbbbb",
		"external_ids:sandbox=bbbbbbbbbbbbbbbb2",
		"--", "add-port", "br-int", "foreign")
	b.start(t)
	awaitOutput(t, "aaaaaaaaaaaaaaa\nforeign\n"+mgmtLink, "ovs-vsctl", "list-ports", "br-int")
	testkit.Eventually(t, "the port is counted", func() string { // after it is gone
		if n := b.changes(t); n != 1 {
			return fmt.Sprintf("%d changes, want the one port", n)
		}
		return ""
	})
}

// The Node says which networks outside it has bridges to, whoever maps them.
func TestSaysPhysicalNetworks(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.becomeReady(t)
	b.awaitAnnotations(t, map[string]string{annotation.NodePhysicalNetworks: `[]`})
	testkit.Run(t, "ovs-vsctl", "--no-wait", "add-br", "br1", "--", "set", "Open_vSwitch", ".",
		"external_ids:ovn-bridge-mappings=storage:br1,lan:br2")
	b.awaitAnnotations(t, map[string]string{annotation.NodePhysicalNetworks: `["storage"]`})
	testkit.Run(t, "ovs-vsctl", "--no-wait", "add-br", "br2")
	b.awaitAnnotations(t, map[string]string{annotation.NodePhysicalNetworks: `["lan","storage"]`})
	testkit.Run(t, "ovs-vsctl", "remove", "Open_vSwitch", ".", "external_ids", "ovn-bridge-mappings")
	b.awaitAnnotations(t, map[string]string{annotation.NodePhysicalNetworks: `[]`})
}

// The chassis name that somebody gave the node before stays.
func TestKeepsSystemID(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.stop()
	testkit.Run(t, "ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:system-id=mine")
	b.start(t)
	b.awaitAnnotations(t, map[string]string{annotation.NodeChassisID: "mine"})
	if got := strings.TrimSpace(testkit.Run(t, "ovs-vsctl", "get", "Open_vSwitch", ".",
		"external_ids:system-id")); got != "mine" {
		t.Errorf("system-id %q, want mine", got)
	}
}
