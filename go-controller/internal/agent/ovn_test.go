package agent

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"

	"net/netip"
)

// The agent and the plugin with a real OVN: the agent tells how far the
// management port has come, pods get their network, and packets flow.
func TestWithOVN(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	sb := testkit.StartOVN(t)
	nbctl := func(script string) { testkit.Run(t, "sh", "-ec", "ovn-nbctl "+script) }
	b := newBed(t)
	b.stop()
	b.config.SBAddress = sb
	b.start(t)
	b.grantSubnets(t, "10.128.2.0/23", "fd01:0:0:1::/64")
	b.awaitMissing(t, "the Southbound database has no Port_Binding k8s-worker-1.example")
	nbctl(`-- lr-add cr -- lrp-add cr rtos 0a:58:0a:80:02:01 10.128.2.1/23 fd01:0:0:1::1/64 -- ls-add sw \
		-- lsp-add sw stor -- lsp-set-type stor router -- lsp-set-addresses stor router \
		-- lsp-set-options stor router-port=rtos \
		-- lsp-add sw k8s-worker-1.example \
		-- lsp-set-addresses k8s-worker-1.example "0a:58:0a:80:02:02 10.128.2.2 fd01:0:0:1::2"`)
	b.awaitMissing(t, "port not bound: no chassis has claimed")
	testkit.StartOVNController(t)
	b.awaitReady(t)
	b.awaitGauges(t, "ovn_controller_up=1 ovn_controller_connected=1")
	b.awaitState(t, strings.ReplaceAll(wantState, "ssl:172.18.0.1:6642", sb))

	for i, pod := range []string{"a", "b"} {
		ips := []netip.Prefix{
			netip.MustParsePrefix(fmt.Sprintf("10.128.2.%d/23", 3+i)),
			netip.MustParsePrefix(fmt.Sprintf("fd01:0:0:1::%d/64", 3+i)),
		}
		n := annotation.PodNetwork{
			IPs: ips, MAC: ipnet.MACFor(ipnet.Addrs(ips)),
			Gateways: []netip.Addr{netip.MustParseAddr("10.128.2.1"), netip.MustParseAddr("fd01:0:0:1::1")},
		}
		addresses := fmt.Sprintf("%s %s %s", n.MAC, ips[0].Addr(), ips[1].Addr())
		nbctl(fmt.Sprintf(`-- lsp-add sw default_%[1]s \
			-- lsp-set-addresses default_%[1]s "%[2]s" -- lsp-set-port-security default_%[1]s "%[2]s" \
			-- lsp-set-options default_%[1]s requested-chassis=%[3]s iface-id-ver=uid-%[1]s`,
			pod, addresses, names.SystemID(node)))
		_, err := b.client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: pod, UID: types.UID("uid-" + pod),
				Annotations: map[string]string{annotation.PodNetworks: annotation.MarshalPodNetworks(n)},
			},
			Spec: corev1.PodSpec{NodeName: node},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		testkit.Run(t, "ip", "netns", "add", pod)
		testkit.Run(t, "ip", "-n", pod, "link", "set", "lo", "up")
		cniAdd(t, b.config.CNISocket(), pod)
	}
	for _, ping := range []string{
		"ip netns exec a ping -c1 -W5 10.128.2.4", "ip netns exec a ping -c1 -W5 fd01:0:0:1::4",
		"ip netns exec b ping -c1 -W5 10.128.2.2", "ip netns exec b ping -c1 -W5 fd01:0:0:1::2",
		"ping -c1 -W5 10.128.2.3", "ping -c1 -W5 fd01:0:0:1::3", "ip netns exec a ping -c1 -W5 10.128.2.1",
	} {
		testkit.Run(t, "sh", "-c", ping)
	}
	// Outside hosts see the node's address.
	nbctl(`-- --policy=src-ip lr-route-add cr 10.128.2.0/23 10.128.2.2 \
		-- --policy=src-ip lr-route-add cr fd01:0:0:1::/64 fd01:0:0:1::2`)
	testkit.Run(t, "sh", "-ec", `ip addr add fd18::2/64 dev eth0 nodad; ip netns add out; ip link set eth0peer netns out
		ip -n out link set lo up; ip -n out link set eth0peer up
		ip -n out addr add 172.18.0.1/16 dev eth0peer; ip -n out addr add fd18::1/64 dev eth0peer nodad
		ethtool -K eth0 tx off; ip netns exec out ethtool -K eth0peer tx off`)
	testkit.Eventually(t, "pods reach an outside host", func() string {
		for _, dest := range []string{"172.18.0.1", "fd18::1"} {
			if out, err := exec.Command("ip", "netns", "exec", "a", "ping", "-c1", "-W1", dest).CombinedOutput(); err != nil {
				return "got " + string(out)
			}
		}
		return ""
	})
	// The node's restart of the agent does not disturb a pod's traffic.
	flood := exec.Command(testkit.Tool(t, "ip"), "netns", "exec", "a",
		"ping", "-q", "-i", "0.01", "-c", "150", "-W", "5", "10.128.2.4")
	var out bytes.Buffer
	flood.Stdout = &out
	if err := flood.Start(); err != nil {
		t.Fatal(err)
	}
	b.stop()
	b.start(t)
	b.awaitReady(t)
	if n := b.changes(t); n != 0 {
		t.Errorf("a restart changed %d things, want 0", n)
	}
	if err := flood.Wait(); err != nil || !strings.Contains(out.String(), " 0% packet loss") {
		t.Errorf("ping during the agent's restart: %v\n%s", err, out.String())
	}

	// Without ovn-controller running pods go on, and new ones can't be served.
	testkit.Run(t, "sh", "-ec", "kill -9 $(cat /run/ovn/ovn-controller.pid)")
	b.awaitMissing(t, "ovn-controller does not answer")
	b.awaitGauges(t, "ovn_controller_up=0 ovn_controller_connected=0")
	testkit.Run(t, "ip", "netns", "exec", "a", "ping", "-c1", "-W5", "10.128.2.4")
}

// awaitGauges waits until gauges of ovn-controller have the wanted values. The datapath is measured beside them.
func (b *bed) awaitGauges(t *testing.T, want string) {
	t.Helper()
	testkit.Eventually(t, want, func() string {
		families, err := b.registry.Gather()
		if err != nil {
			return err.Error()
		}
		have := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := strings.TrimPrefix(f.GetName(), "northbound_")
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				have[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		if have["datapath_lookups_total missed"] == 0 {
			return "no packet was looked up in the datapath"
		}
		now := fmt.Sprintf("ovn_controller_up=%v ovn_controller_connected=%v", have["ovn_controller_up"],
			have["ovn_controller_connected"])
		if now != want {
			return "got " + now
		}
		return ""
	})
}

func cniAdd(t *testing.T, socket, pod string) {
	t.Helper()
	cmd := exec.Command(testkit.Program(t, "ovn_cni"))
	cmd.Stdin = strings.NewReader(`{"cniVersion":"1.0.0","name":"ovn-kubernetes",` +
		`"type":"ovn_cni","socket":"` + socket + `"}`)
	cmd.Env = []string{
		"CNI_COMMAND=ADD", "CNI_CONTAINERID=container-" + pod + "-with-a-long-id", "CNI_NETNS=/run/netns/" + pod,
		"CNI_IFNAME=eth0", "CNI_PATH=" + testkit.ProgramDir,
		"CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + pod + ";K8S_POD_UID=uid-" + pod,
	}
	if out, err := cmd.Output(); err != nil {
		t.Fatalf("ADD of %s: %v\n%s", pod, err, out)
	}
}
