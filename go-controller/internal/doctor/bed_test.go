package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/northbound-net/northbound/go-controller/internal/agent"
	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	kubekinds "github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const (
	node = "worker-1.example"
	mgmt = "k8s-worker-1.ex"
)

func TestMain(m *testing.M) {
	os.Exit(testkit.RunWith(m, "github.com/northbound-net/northbound/go-controller/cmd/ovn_cni"))
}

// bed is a node with real Open vSwitch, OVN and agent, and a peer that is a
// chassis by its rows, and a host that answers pings. The API is a fake.
type bed struct {
	vs     *testkit.VSwitch
	client *fake.Clientset
	agent  *agent.Agent
	stop   func()
	config Config
	tools  Tools
}

// setUp makes the peer at 172.18.0.3 and the Northbound rows that a master
// would.
const setUp = `
ip link add eth0 type veth peer name eth0peer
ip netns add peer
ip link set eth0peer netns peer
ip addr add 172.18.0.2/16 dev eth0
ip link set eth0 up
ip -n peer addr add 172.18.0.3/16 dev eth0peer
ip -n peer link set eth0peer up
ip -n peer link set lo up
ovn-nbctl lr-add cr -- lrp-add cr rtos 0a:58:0a:80:02:01 10.128.2.1/23 fd01:0:0:1::1/64 -- ls-add sw \
	-- lsp-add sw stor -- lsp-set-type stor router -- lsp-set-addresses stor router \
	-- lsp-set-options stor router-port=rtos
` + addPort + `
ovn-sbctl chassis-add peer geneve 172.18.0.3
`

// addPort makes the management port's logical port.
const addPort = `ovn-nbctl lsp-add sw k8s-worker-1.example \
	-- lsp-set-addresses k8s-worker-1.example "0a:58:0a:80:02:02 10.128.2.2 fd01:0:0:1::2"`

func newBed(t *testing.T) *bed {
	t.Helper()
	sb := testkit.StartOVN(t)
	b := &bed{vs: testkit.StartVSwitch(t), client: fake.NewClientset()}
	shell(t, setUp)
	c := config.DefaultNode()
	c.Name, c.DatapathType, c.SBAddress = node, config.DatapathNetdev, sb
	c.CNIConfDir, c.CNISocketDir, c.CNIBinDir, c.Metrics = "/run/net.d", "/run/cni", testkit.ProgramDir, "127.0.0.1:9410"
	c.ClusterSubnets = []config.ClusterSubnet{
		{CIDR: netip.MustParsePrefix("10.128.0.0/14"), NodeLength: 23},
		{CIDR: netip.MustParsePrefix("fd01::/48"), NodeLength: 64},
	}
	c.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd02::/112")}
	b.config = Config{Node: c, Kubernetes: true, Timeout: 3 * time.Second}
	annotations := map[string]string{annotation.NodeSubnets: annotation.MarshalNodeSubnets([]netip.Prefix{
		netip.MustParsePrefix("10.128.2.0/23"), netip.MustParsePrefix("fd01:0:0:1::/64"),
	})}
	_, err := b.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, UID: "uid", Annotations: annotations},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.18.0.2"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, ClusterIP: "10.112.0.10", ClusterIPs: []string{"10.112.0.10"},
			ExternalIPs: []string{"172.18.0.2"}, // the node's own, which no service gets
			Ports:       []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// A range of ClusterIPs that only the API knows.
	_, err = b.client.NetworkingV1().ServiceCIDRs().Create(t.Context(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "more"},
		Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.112.0.0/16"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tools, closed, err := Real(c.Kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closed)
	b.tools = tools
	b.tools.API = &fakeAPI{
		answer: client.Answer{
			Server: "https://api", Version: "v1.36.3", Date: time.Now(), Asked: time.Now(), Read: time.Now(),
		},
		node:  local.Node{UID: "uid", Annotations: annotations, InternalIPs: []string{"172.18.0.2"}},
		there: true, client: b.client,
	}
	return b
}

// fakeAPI is an API server that answers what it is told to.
type fakeAPI struct {
	answer client.Answer
	err    error
	node   local.Node
	there  bool
	client kubernetes.Interface // of services
}

func (f *fakeAPI) Probe(context.Context) (client.Answer, error) { return f.answer, f.err }

func (f *fakeAPI) Node(context.Context, string) (local.Node, bool, error) {
	return f.node, f.there, nil
}

func (f *fakeAPI) Served(ctx context.Context, node string, needy func(*cluster.Service) bool) (local.Served, error) {
	watcher, err := local.New(&client.Clients{Kube: f.client}, kubekinds.All(), node, slog.New(slog.DiscardHandler))
	if err != nil {
		return local.Served{}, err
	}
	return watcher.Served(ctx, needy)
}

// start runs the agent until the node is ready.
func (b *bed) start(t *testing.T) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	kube, err := local.New(&client.Clients{Kube: b.client}, kubekinds.All(), node, log)
	if err != nil {
		t.Fatal(err)
	}
	b.agent, err = agent.New(b.config.Node, kube, prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.agent.Run(ctx) }()
	stopped := false
	b.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the agent ended with: %v", err)
			}
		}
	}
	t.Cleanup(b.stop)
	testkit.Eventually(t, "readiness", func() string {
		if err := b.agent.Ready(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// examine is the diagnosis, with the findings by name.
func (b *bed) examine(t *testing.T) (Diagnosis, map[string]Finding) {
	t.Helper()
	r := Examine(t.Context(), b.config, b.tools)
	found := map[string]Finding{}
	for _, f := range r.Findings {
		found[f.Check] = f
	}
	return r, found
}

// await waits until a check comes to a status with this in its message.
func (b *bed) await(t *testing.T, check string, status Status, part string) (last Finding) {
	t.Helper()
	testkit.Eventually(t, check, func() string {
		_, found := b.examine(t)
		if last = found[check]; last.Status != status || !strings.Contains(last.Message, part) {
			return fmt.Sprintf("%s %q, want %s with %q", last.Status, last.Message, status, part)
		}
		return ""
	})
	return last
}

func shell(t *testing.T, script string) {
	t.Helper()
	testkit.Run(t, "sh", "-ec", script)
}
