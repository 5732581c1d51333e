package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/plugins/pkg/ns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const binDir = testkit.ProgramDir

func TestMain(m *testing.M) {
	os.Exit(testkit.RunWith(m, "github.com/northbound-net/northbound/go-controller/cmd/ovn_cni",
		"github.com/containernetworking/plugins/plugins/meta/portmap"))
}

// awaitChain has the agent look again and waits until the configuration has
// exactly these plugins.
func (b *bed) awaitChain(t *testing.T, want ...string) *libcni.NetworkConfigList {
	t.Helper()
	var list *libcni.NetworkConfigList
	n := b.node(t)
	n.Annotations["test/look"] += "again "
	if _, err := b.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the chain of plugins", func() string {
		var err error
		if list, err = libcni.ConfListFromFile(filepath.Join(b.config.CNIConfDir, names.CNIConfFile)); err != nil {
			return err.Error()
		}
		var have []string
		for _, p := range list.Plugins {
			have = append(have, p.Network.Type)
		}
		if strings.Join(have, " ") != strings.Join(want, " ") {
			return fmt.Sprintf("%v, want %v", have, want)
		}
		return ""
	})
	return list
}

// portmap is in the chain as long as the runtime can find it, and with it a
// hostPort reaches the pod, from outside and from the node, in both families.
func TestHostPort(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	sb := testkit.StartOVN(t)
	b := newBed(t)
	b.stop()
	b.config.SBAddress, b.config.CNIBinDir = sb, binDir
	if err := os.Chmod(binDir+"/portmap", 0o600); err != nil { // as while it is being installed
		t.Fatal(err)
	}
	b.start(t)
	b.grantSubnets(t, "10.128.2.0/23", "fd01:0:0:1::/64")
	testkit.Run(t, "sh", "-ec", `ovn-nbctl lr-add cr \
		-- lrp-add cr rtos 0a:58:0a:80:02:01 10.128.2.1/23 fd01:0:0:1::1/64 -- ls-add sw \
		-- lsp-add sw stor -- lsp-set-type stor router -- lsp-set-addresses stor router \
		-- lsp-set-options stor router-port=rtos \
		-- lsp-add sw k8s-worker-1.example \
		-- lsp-set-addresses k8s-worker-1.example "0a:58:0a:80:02:02 10.128.2.2 fd01:0:0:1::2" \
		-- lsp-add sw default_web -- lsp-set-addresses default_web "0a:58:0a:80:02:03 10.128.2.3 fd01:0:0:1::3" \
		-- lsp-set-options default_web iface-id-ver=uid-web
		ip addr add fd18::2/64 dev eth0 nodad; ip netns add out; ip link set eth0peer netns out
		ip -n out link set lo up; ip -n out link set eth0peer up
		ip -n out addr add 172.18.0.1/16 dev eth0peer; ip -n out addr add fd18::1/64 dev eth0peer nodad
		ethtool -K eth0 tx off; ip netns exec out ethtool -K eth0peer tx off
		ip netns add web; ip -n web link set lo up`)
	testkit.StartOVNController(t)
	b.awaitReady(t)
	b.awaitChain(t, "ovn_cni")
	if err := os.Chmod(binDir+"/portmap", 0o755); err != nil {
		t.Fatal(err)
	}
	b.awaitChain(t, "ovn_cni", "portmap")
	if err := os.Rename(binDir+"/portmap", binDir+"/away"); err != nil {
		t.Fatal(err)
	}
	b.awaitChain(t, "ovn_cni")
	if err := os.Rename(binDir+"/away", binDir+"/portmap"); err != nil {
		t.Fatal(err)
	}
	list := b.awaitChain(t, "ovn_cni", "portmap")

	b.makePod(t, "web", "10.128.2.3/23", "fd01:0:0:1::3/64")
	rt := &libcni.RuntimeConf{
		ContainerID: "container-web-with-a-long-id", NetNS: "/run/netns/web", IfName: "eth0",
		Args: [][2]string{{"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", "web"}, {"K8S_POD_UID", "uid-web"}},
		CapabilityArgs: map[string]any{
			"portMappings": []map[string]any{{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}},
		},
	}
	lib := libcni.NewCNIConfigWithCacheDir([]string{binDir}, "/run/cache", nil)
	if _, err := lib.AddNetworkList(t.Context(), list, rt); err != nil {
		t.Fatalf("ADD: %v", err)
	}
	if err := lib.CheckNetworkList(t.Context(), list, rt); err != nil {
		t.Errorf("CHECK: %v", err)
	}
	tellPeers(t, "/run/netns/web")
	for _, c := range []struct{ from, to, source string }{
		{"/run/netns/out", "172.18.0.2:8080", "10.128.2.2"},
		{"/run/netns/out", "[fd18::2]:8080", "fd01:0:0:1::2"},
		{"/proc/self/ns/net", "172.18.0.2:8080", "10.128.2.2"},
		{"/proc/self/ns/net", "127.0.0.1:8080", "10.128.2.2"},
		{"/proc/self/ns/net", "[fd18::2]:8080", "fd01:0:0:1::2"},
	} {
		testkit.Eventually(t, c.from+" reaches the pod at "+c.to, func() string {
			source, err := peerSeen(t.Context(), c.from, c.to)
			if err != nil || source != c.source {
				return fmt.Sprintf("%v, the pod sees %q, want %q", err, source, c.source)
			}
			return ""
		})
	}
	for range 2 {
		if err := lib.DelNetworkList(t.Context(), list, rt); err != nil {
			t.Errorf("DEL: %v", err)
		}
	}
	if source, err := peerSeen(t.Context(), "/run/netns/out", "172.18.0.2:8080"); err == nil {
		t.Errorf("the hostPort of a pod that is gone still answers %q", source)
	}
	for _, tool := range []string{"iptables", "ip6tables"} {
		if got := testkit.Run(t, tool, "-t", "nat", "-S"); strings.Contains(got, "8080") {
			t.Errorf("%s has rules for the port after DEL:\n%s", tool, got)
		}
	}
}

// makePod makes a pod as the master leaves it.
func (b *bed) makePod(t *testing.T, name string, ips ...string) {
	t.Helper()
	n := annotation.PodNetwork{
		Gateways: []netip.Addr{netip.MustParseAddr("10.128.2.1"), netip.MustParseAddr("fd01:0:0:1::1")},
	}
	for _, s := range ips {
		n.IPs = append(n.IPs, netip.MustParsePrefix(s))
	}
	n.MAC = ipnet.MACFor(ipnet.Addrs(n.IPs))
	_, err := b.client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name),
			Annotations: map[string]string{annotation.PodNetworks: annotation.MarshalPodNetworks(n)},
		},
		Spec: corev1.PodSpec{NodeName: node},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// tellPeers serves port 80 in a network namespace: each client is told which
// address it comes from.
func tellPeers(t *testing.T, netns string) {
	t.Helper()
	var l net.Listener
	listen := func(ns.NetNS) (err error) { l, err = net.Listen("tcp", ":80"); return err }
	if err := ns.WithNetNSPath(netns, listen); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap())
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

// peerSeen connects from a network namespace and is what tellPeers answers.
func peerSeen(ctx context.Context, netns, address string) (source string, err error) {
	buf := make([]byte, 64)
	err = ns.WithNetNSPath(netns, func(ns.NetNS) error {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		n, err := c.Read(buf)
		source = string(buf[:n])
		return err
	})
	return source, err
}

// ask sends a request to the agent's socket and is the code of the answer and
// its text.
func ask(t *testing.T, socket string, r protocol.Request) (code uint, text string) {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var answer protocol.Response
	if err := protocol.Write(c, r); err != nil {
		t.Fatal(err)
	}
	if err := protocol.Read(c, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error == nil {
		return 0, ""
	}
	return answer.Error.Code, answer.Error.Error()
}

// STATUS tells a node that is not ready yet from one whose running pods may
// have lost their network.
func TestCNIStatus(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	await := func(code uint, says string) {
		t.Helper()
		testkit.Eventually(t, "STATUS", func() string {
			have, text := ask(t, b.config.CNISocket(), protocol.Request{Command: protocol.Status, Config: []byte(`{}`)})
			if have != code || !strings.Contains(text, says) {
				return fmt.Sprintf("code %d %q, want %d with %q", have, text, code, says)
			}
			return ""
		})
	}
	b.awaitMissing(t, "no annotation k8s.ovn.org/node-subnets")
	await(protocol.CodeNotAvailable, "no annotation k8s.ovn.org/node-subnets")
	b.grantSubnets(t, "10.128.2.0/23", "fd01:0:0:1::/64")
	await(protocol.CodeLimited, "management port "+names.ManagementInterface(node)+" is not bound")
	b.becomeReady(t)
	await(0, "")
	b.vs.StopDB(t)
	await(protocol.CodeLimited, "ovsdb-server")
	b.vs.StartDB(t)
	await(0, "")
}
