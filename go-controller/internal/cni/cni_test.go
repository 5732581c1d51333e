package cni_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	kubeclient "github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const (
	nodeName = "n1"
	socket   = "/run/cni/agent.sock"
	plugin   = testkit.ProgramDir + "/ovn_cni"
)

// bed is a CNI server with a real Open vSwitch, kernel and plugin. The API server is a fake, and the test plays
// ovn-controller.
type bed struct {
	client *fake.Clientset
	vs     *testkit.VSwitch
	server *server.Server
	node   *fakeNode
	seen   *observer
	asked  chan struct{} // filled when the server has looked at a pod
	stop   func()
}

// askedPods signals when the server has looked at a pod.
type askedPods struct {
	server.Pods
	asked chan struct{}
}

func (p askedPods) WaitPod(ctx context.Context, namespace, name string, accept func(local.Pod, bool) bool) error {
	return p.Pods.WaitPod(ctx, namespace, name, func(pod local.Pod, ok bool) bool {
		accepted := accept(pod, ok)
		select {
		case p.asked <- struct{}{}:
		default:
		}
		return accepted
	})
}

// fakeNode plays the agent.
type fakeNode struct {
	mu      sync.Mutex
	missing error
	hasty   bool // Settings fails at once instead of waiting
}

func (n *fakeNode) Missing() error { n.mu.Lock(); defer n.mu.Unlock(); return n.missing }

func (n *fakeNode) miss(err error) { n.mu.Lock(); defer n.mu.Unlock(); n.missing = err }

func (n *fakeNode) Settings(ctx context.Context) (server.Settings, error) {
	if err := n.Missing(); err != nil {
		if !n.hasty {
			<-ctx.Done()
		}
		return server.Settings{}, err
	}
	return server.Settings{MTU: 1442, Userspace: true,
		NodeSubnets: `{"blue":["10.128.2.0/23"],"default":["10.128.2.0/23","fd01:0:0:1::/64"]}`}, nil
}

// observer remembers which phases ADD went through.
type observer struct {
	mu     sync.Mutex
	phases []server.Phase
}

func (o *observer) Phase(p server.Phase, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.phases = append(o.phases, p)
}

func (o *observer) Request(string, uint, time.Duration) {}

func (o *observer) take() []server.Phase {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.phases
	o.phases = nil
	return out
}

func newBed(t *testing.T, timeout time.Duration) *bed {
	t.Helper()
	b := &bed{vs: testkit.StartVSwitch(t), client: fake.NewClientset(), node: &fakeNode{}, seen: &observer{},
		asked: make(chan struct{}, 1)}
	testkit.Run(t, "ovs-vsctl", "add-br", "br-int", "--", "set", "bridge", "br-int", "datapath_type=netdev",
		"fail_mode=secure")
	b.startServer(t, func(s *server.Server) { s.Timeout = timeout })
	return b
}

// startServer runs a CNI server, after adjust, until the test ends or b.stop is called.
func (b *bed) startServer(t *testing.T, adjust func(*server.Server)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s, kube, err := newServer(ctx, b.client, b.vs.Address)
	if err != nil {
		t.Fatal(err)
	}
	s.Pods, s.Node, s.Observer = askedPods{kube, b.asked}, b.node, b.seen
	db := s.Switch.(*ovs.DB)
	adjust(s)
	l, err := server.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	b.server = s
	var running sync.WaitGroup
	running.Go(func() { kube.Run(ctx) })
	running.Go(func() {
		if err := s.Serve(ctx, l); err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	b.stop = sync.OnceFunc(func() { cancel(); running.Wait(); db.Close() })
	t.Cleanup(b.stop)
}

// newServer is a server with the node's Open vSwitch and the pods of client.
func newServer(ctx context.Context, client kubernetes.Interface, ovsAddress string) (*server.Server, *local.Watcher,
	error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	kube, err := local.New(&kubeclient.Clients{Kube: client}, kinds.All(), nodeName, log)
	if err != nil {
		return nil, nil, err
	}
	db, err := ovs.Open(ctx, ovsAddress, log)
	if err != nil {
		return nil, nil, err
	}
	return &server.Server{Switch: db, Pods: kube, Node: &fakeNode{}, Observer: &observer{}, Log: log,
		Binding: db.Binding}, kube, nil
}

// pod is a pod with the network that the master would annotate.
type pod struct {
	name, uid string
	ips       []string
	gateways  []string
	further   map[string]annotation.PodNetwork // attachments to other networks, by key
}

func (p pod) network() annotation.PodNetwork {
	var n annotation.PodNetwork
	for _, s := range p.ips {
		n.IPs = append(n.IPs, netip.MustParsePrefix(s))
	}
	for _, s := range p.gateways {
		n.Gateways = append(n.Gateways, netip.MustParseAddr(s))
	}
	n.MAC = ipnet.MACFor(ipnet.Addrs(n.IPs))
	return n
}

// annotation is what the master writes for the pod.
func (p pod) annotation() string {
	all := map[string]annotation.PodNetwork{"default": p.network()}
	maps.Copy(all, p.further)
	return annotation.MarshalAttachments(all)
}

// numbered is the i-th of several pods, with addresses of its own.
func numbered(i int) pod {
	return pod{fmt.Sprint("p", i), fmt.Sprint("uid", i), []string{fmt.Sprintf("10.128.2.%d/23", 10+i),
		fmt.Sprintf("fd01:0:0:1::%x/64", 10+i)}, []string{"10.128.2.1", "fd01:0:0:1::1"}, nil}
}

// object is the annotated pod.
func (p pod) object() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: p.name, UID: types.UID(p.uid),
			Annotations: map[string]string{annotation.PodNetworks: p.annotation()},
		},
		Spec: corev1.PodSpec{NodeName: nodeName},
	}
}

func web() pod {
	return pod{"web", "uid-web", []string{"10.128.2.3/23", "fd01:0:0:1::3/64"}, []string{"10.128.2.1", "fd01:0:0:1::1"},
		nil}
}

// create creates the pod, with its annotations if annotate is set.
func (b *bed) create(t *testing.T, p pod, annotate bool) {
	t.Helper()
	obj := p.object()
	if !annotate {
		obj.Annotations = nil
	}
	if _, err := b.client.CoreV1().Pods("default").Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) delete(t *testing.T, name string) {
	t.Helper()
	if err := b.client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// call is one run of the plugin.
type call struct {
	command, id, netns, args string
	version                  string
	prev                     json.RawMessage
	extra                    map[string]any
	drop                     string // an environment variable to leave out
	ifName                   string // "" for eth0
}

func add(p pod, id, netns string) call {
	return call{
		command: protocol.Add, id: id, netns: netns, version: "1.0.0",
		args: fmt.Sprintf("IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=%s;"+
			"K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s", p.name, id, p.uid),
	}
}

func (c call) as(command string) call { c.command = command; return c }

func (c call) after(prev json.RawMessage) call { c.prev = prev; return c }

func (c call) in(version string) call { c.version = version; return c }

func (c call) conf() map[string]any {
	conf := map[string]any{"cniVersion": c.version, "name": "ovn-kubernetes", "type": "ovn_cni", "socket": socket}
	if c.prev != nil {
		conf["prevResult"] = c.prev
	}
	for k, v := range c.extra {
		conf[k] = v
	}
	return conf
}

func (c call) cmd(ctx context.Context, t *testing.T) *exec.Cmd {
	t.Helper()
	conf, err := json.Marshal(c.conf())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, plugin)
	cmd.Stdin = bytes.NewReader(conf)
	cmd.Env = []string{}
	for _, kv := range []string{
		"CNI_COMMAND=" + c.command, "CNI_CONTAINERID=" + c.id, "CNI_NETNS=" + c.netns,
		"CNI_IFNAME=" + cmp.Or(c.ifName, "eth0"),
		"CNI_ARGS=" + c.args, "CNI_PATH=" + filepath.Dir(plugin),
	} {
		if k, _, _ := strings.Cut(kv, "="); k != c.drop {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	return cmd
}

// run calls the plugin and returns its output, or the error that it printed.
func (c call) run(t *testing.T) (json.RawMessage, *protocol.Error) {
	t.Helper()
	out, err := c.cmd(t.Context(), t).Output()
	if err == nil {
		return out, nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("running the plugin: %v", err)
	}
	var e struct {
		Code    uint   `json:"code"`
		Msg     string `json:"msg"`
		Details string `json:"details"`
	}
	if err := json.Unmarshal(out, &e); err != nil || e.Code == 0 {
		t.Fatalf("%s failed without a CNI error: %v\n%s%s", c.command, err, out, exit.Stderr)
	}
	return nil, &protocol.Error{Code: e.Code, Msg: e.Msg, Details: e.Details}
}

// succeed calls the plugin, which must succeed.
func (c call) succeed(t *testing.T) json.RawMessage {
	t.Helper()
	out, err := c.run(t)
	if err != nil {
		t.Fatalf("%s: code %d: %v", c.command, err.Code, err)
	}
	return out
}

// fail calls the plugin, which must fail with the code and a message that contains all words.
func (c call) fail(t *testing.T, code uint, words ...string) {
	t.Helper()
	out, err := c.run(t)
	if err == nil {
		t.Fatalf("%s succeeded with %s, want code %d", c.command, out, code)
	}
	if err.Code != code {
		t.Errorf("%s: code %d (%v), want %d", c.command, err.Code, err, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: error %q does not say %q", c.command, err, w)
		}
	}
}

// install marks the port as installed as soon as it exists, as ovn-controller does. It does not wait until ovs-vswitchd
// has seen that: a test may have stopped the database by then.
func install(t *testing.T, id string) {
	t.Helper()
	name := names.HostVeth(id)
	cmd := exec.Command(testkit.Tool(t, "ovs-vsctl"), "--timeout=20", "--no-wait", "wait-until", "interface",
		name, "ofport>0", "--", "set", "interface", name, "external_ids:ovn-installed=true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Wait(); err != nil {
			t.Errorf("installing %s: %v", name, err)
		}
	})
}

func netns(t *testing.T, name string) string {
	t.Helper()
	testkit.Run(t, "ip", "netns", "add", name)
	return "/run/netns/" + name
}

// left lists the interfaces and ports of pods on the node.
func left(t *testing.T) string {
	t.Helper()
	return lines(testkit.Run(t, "sh", "-c",
		"ip -br link show type veth; ovs-vsctl --bare --columns=name find interface type='\"\"'; ovs-vsctl list-ports "+
			"br-int; ovs-vsctl --bare --columns=name find port name!=br-int"))
}

func lines(s string) string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		if l = strings.Join(strings.Fields(l), " "); l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}
