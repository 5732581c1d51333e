package cni_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// Container ids like those of containerd, but shorter.
const (
	idA = "aaaaaaaaaaaaaaaa1111111111111111"
	idB = "bbbbbbbbbbbbbbbb2222222222222222"
)

// podState is the network that a container sees.
const podState = `ip -br addr show dev eth0 scope global
ip -br link show dev eth0 | cut -d' ' -f1 | cut -d@ -f1
cat /sys/class/net/eth0/address /sys/class/net/eth0/mtu
ip -4 route; ip -6 route show default
ethtool -k eth0 | grep ^tx-checksumming
grep . /proc/sys/net/ipv6/conf/eth0/accept_ra /proc/sys/net/ipv6/conf/eth0/autoconf \
	/proc/sys/net/ipv6/neigh/eth0/ucast_solicit`

const wantPodState = `eth0@if# UP 10.128.2.3/23 fd01:0:0:1::3/64
eth0
0a:58:0a:80:02:03
1442
default via 10.128.2.1 dev eth0
10.128.2.0/23 dev eth0 proto kernel scope link src 10.128.2.3
default via fd01:0:0:1::1 dev eth0 metric 1024 pref medium
tx-checksumming: off
/proc/sys/net/ipv6/conf/eth0/accept_ra:0
/proc/sys/net/ipv6/conf/eth0/autoconf:0
/proc/sys/net/ipv6/neigh/eth0/ucast_solicit:60`

func inPod(t *testing.T, ns string) string {
	t.Helper()
	out := lines(testkit.Run(t, "ip", "netns", "exec", ns, "sh", "-c", podState))
	if i := strings.Index(out, "@if"); i >= 0 {
		out = out[:i+3] + "#" + strings.TrimLeft(out[i+3:], "0123456789")
	}
	return out
}

func TestAddCheckDel(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	p := web()
	b.create(t, p, true)
	ns := netns(t, "web")
	install(t, idA)
	a := add(p, idA, ns)
	result := a.succeed(t)
	checkResult(t, result)
	if got := inPod(t, "web"); got != wantPodState {
		t.Errorf("in the pod:\n%s\nwant:\n%s", got, wantPodState)
	}
	wantPhases := []server.Phase{server.PhaseAgent, server.PhaseAnnotation, server.PhaseInterface, server.PhasePort,
		server.PhaseFlows}
	if got := b.seen.take(); !slices.Equal(got, wantPhases) {
		t.Errorf("phases %v, want %v", got, wantPhases)
	}
	wantIDs := `{attached_mac="0a:58:0a:80:02:03", iface-id=default_web, iface-id-ver=uid-web, ` +
		`ip_addresses="10.128.2.3/23,fd01:0:0:1::3/64", ovn-installed="true", sandbox=` + idA + `}`
	if got := strings.TrimSpace(testkit.Run(t, "ovs-vsctl", "get", "interface", names.HostVeth(idA),
		"external_ids")); got != wantIDs {
		t.Errorf("external_ids %s\nwant %s", got, wantIDs)
	}
	a.as(protocol.Check).after(result).succeed(t)

	// A second interface of the same name in the same container.
	add(p, idB, ns).fail(t, protocol.CodeInvalidEnv, "CNI_IFNAME is taken", "eth0")
	for range 3 {
		a.as(protocol.Del).succeed(t)
	}
	a.as(protocol.Check).after(result).fail(t, protocol.CodeCheck, "is not on the node", "is not in Open vSwitch",
		"eth0 is not in the container")
	testkit.Run(t, "ip", "netns", "del", "web")
	a.as(protocol.Del).after(result).succeed(t)
	a.as(protocol.Del).after(json.RawMessage("{}")).succeed(t)
	a.as(protocol.Del).after(json.RawMessage("null")).succeed(t)
	never := add(pod{name: "never", uid: "uid-never"}, idB, "")
	never.as(protocol.Del).succeed(t)
	never.args = ""
	never.as(protocol.Del).succeed(t)
	never.netns = "/proc/self/ns/net" // as if the process id had been the pod's once
	never.as(protocol.Del).succeed(t)
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}
}

func checkResult(t *testing.T, raw json.RawMessage) {
	t.Helper()
	var have map[string]any
	if err := json.Unmarshal(raw, &have); err != nil {
		t.Fatal(err)
	}
	if len(have["interfaces"].([]any)) == 2 {
		host := have["interfaces"].([]any)[0].(map[string]any)
		if mac, _ := host["mac"].(string); len(mac) != 17 {
			t.Errorf("MAC %q of the node's end", mac)
		}
		host["mac"] = "any"
	}
	var want any
	if err := json.Unmarshal([]byte(`{"cniVersion":"1.0.0",
		"interfaces":[{"name":"aaaaaaaaaaaaaaa","mac":"any"},
			{"name":"eth0","mac":"0a:58:0a:80:02:03","sandbox":"/run/netns/web"}],
		"ips":[{"interface":1,"address":"10.128.2.3/23","gateway":"10.128.2.1"},
			{"interface":1,"address":"fd01:0:0:1::3/64","gateway":"fd01:0:0:1::1"}],
		"routes":[{"dst":"0.0.0.0/0","gw":"10.128.2.1"},{"dst":"::/0","gw":"fd01:0:0:1::1"}]}`), &want); err != nil {
		t.Fatal(err)
	}
	h, _ := json.Marshal(have)
	w, _ := json.Marshal(want)
	if string(h) != string(w) {
		t.Errorf("result:\n%s\nwant:\n%s", h, w)
	}
}

// An ADD that fails names the phase, and leaves nothing behind.
func TestAddFails(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, time.Second)
	p := web()
	ns := netns(t, "web")
	a := add(p, idA, ns)
	b.node.miss(fmt.Errorf("no bridge"))
	a.fail(t, protocol.CodeTryAgain, "can't serve pods yet", "no bridge")
	b.node.miss(nil)
	a.fail(t, protocol.CodeTryAgain, "no address for pod default/web", "has not seen pod default/web", "gave up after 1s")
	b.create(t, p, false)
	a.fail(t, protocol.CodeTryAgain, "no annotation k8s.ovn.org/pod-networks yet", "ovnkube master")
	other := a
	other.args = strings.ReplaceAll(a.args, "uid-web", "uid-of-old")
	other.fail(t, protocol.CodeTryAgain, "UID uid-web", "UID uid-of-old")
	b.annotate(t, p, `{"default":{"ip_addresses":["10.128.2.3"],"mac_address":"x"}}`)
	a.fail(t, protocol.CodeTryAgain, "is refused", "10.128.2.3", "not a CIDR")
	b.annotate(t, p, annotation.MarshalPodNetworks(p.network()))
	a.fail(t, protocol.CodeTryAgain, "OVN has not set up the port of pod default/web", "default_web", "ovn-controller")
	b.vs.StopDaemon(t)
	a.fail(t, protocol.CodeTryAgain, "Open vSwitch has not opened the interface of pod default/web", "ovs-vswitchd")
	b.vs.StopDB(t)
	a.fail(t, protocol.CodeTryAgain, "adding the port of pod default/web to Open vSwitch", "ovsdb-server")
	a.as(protocol.Del).succeed(t)
	b.vs.StartDB(t)
	b.vs.StartDaemon(t)
	gone := add(p, idA, "/run/netns/none")
	gone.fail(t, protocol.CodeInvalidEnv, "CNI_NETNS", "/run/netns/none")
	add(p, idA, "/proc/1/ns/net").fail(t, protocol.CodeInvalidEnv, "CNI_NETNS", "the node's own")
	testkit.Eventually(t, "nothing is left", func() string { return left(t) })
	if got := lines(testkit.Run(t, "ip", "-n", "web", "-br", "link")); strings.Contains(got, "eth0") {
		t.Errorf("left in the pod: %s", got)
	}
}

func (b *bed) annotate(t *testing.T, p pod, value string) {
	t.Helper()
	obj, err := b.client.CoreV1().Pods("default").Get(t.Context(), p.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	obj.Annotations = map[string]string{annotation.PodNetworks: value}
	if _, err := b.client.CoreV1().Pods("default").Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The waits of ADD end with the event that they wait for, and a plugin that is killed leaves nothing behind.
func TestAddWaits(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	p := web()
	ns := netns(t, "web")
	a := add(p, idA, ns)
	install(t, idA)
	done := make(chan error, 1)
	cmd := a.cmd(t.Context(), t)
	go func() { _, err := cmd.Output(); done <- err }()
	b.create(t, p, false)
	b.annotate(t, p, annotation.MarshalPodNetworks(p.network()))
	if err := <-done; err != nil {
		t.Fatalf("ADD: %v", err)
	}
	a.as(protocol.Del).succeed(t)

	cmd = a.cmd(t.Context(), t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Run(t, "ovs-vsctl", "--timeout=20", "wait-until", "interface", names.HostVeth(idA), "ofport>0")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("a killed plugin succeeded")
	}
	testkit.Eventually(t, "nothing is left", func() string { return left(t) })
}

// An ADD ends when its pod is deleted, in every phase.
func TestPodGoesDuringAdd(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, time.Hour)
	p := web()
	a := add(p, idA, netns(t, "web"))
	for _, annotated := range []bool{false, true} {
		b.create(t, p, annotated)
		b.awaitSeen(t, p.name)
		<-b.asked // by awaitSeen
		cmd := a.cmd(t.Context(), t)
		out := &bytes.Buffer{}
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if annotated {
			testkit.Run(t, "ovs-vsctl", "--timeout=20", "wait-until", "interface", names.HostVeth(idA), "ofport>0")
		} else {
			<-b.asked
		}
		b.delete(t, p.name)
		if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "the pod was deleted meanwhile") {
			t.Errorf("annotated %v: %v %s, want that the pod was deleted", annotated, err, out)
		}
	}
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}
}

// awaitSeen waits until the server's watch knows the pod.
func (b *bed) awaitSeen(t *testing.T, name string) {
	t.Helper()
	b.awaitPod(t, name, true)
}

// awaitGone waits until the watch has seen the pod go.
func (b *bed) awaitGone(t *testing.T, name string) {
	t.Helper()
	b.awaitPod(t, name, false)
}

// awaitPod waits until the server sees that a pod is there, or that it is not.
func (b *bed) awaitPod(t *testing.T, name string, there bool) {
	t.Helper()
	err := b.server.Pods.WaitPod(t.Context(), "default", name, func(_ local.Pod, ok bool) bool { return ok == there })
	if err != nil {
		t.Fatal(err)
	}
}

// A pod that is created again under its name is another pod. Its ADD waits for its own annotation and takes the logical
// port from the old pod's sandbox, and the old pod's late DEL does not touch it.
func TestRecreatedPod(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	older, newer := web(), web()
	newer.uid, newer.ips = "uid-newer", []string{"10.128.2.9/23", "fd01:0:0:1::9/64"}
	b.create(t, older, true)
	first, second := add(older, idA, netns(t, "old")), add(newer, idB, netns(t, "new"))
	install(t, idA)
	first.succeed(t)
	done := make(chan error, 1)
	cmd := second.cmd(t.Context(), t)
	var out []byte
	go func() {
		var err error
		out, err = cmd.Output()
		done <- err
	}()
	install(t, idB)
	b.delete(t, "web")
	b.create(t, newer, true)
	if err := <-done; err != nil || !strings.Contains(string(out), "10.128.2.9/23") {
		t.Fatalf("ADD of the new pod: %v %s", err, out)
	}
	ids := func(id string) string {
		return strings.TrimSpace(testkit.Run(t, "ovs-vsctl", "--if-exists", "get", "interface", names.HostVeth(id),
			"external_ids:iface-id", "external_ids:iface-id-ver"))
	}
	if got := ids(idB); got != "default_web\nuid-newer" {
		t.Errorf("the new sandbox's port: %s", got)
	}
	if out, err := exec.Command(testkit.Tool(t, "ovs-vsctl"), "get", "interface", names.HostVeth(idA),
		"external_ids:iface-id").CombinedOutput(); err == nil {
		t.Errorf("the old sandbox's port still has iface-id %s", out)
	}
	first.as(protocol.Del).succeed(t)
	if got := ids(idB); got != "default_web\nuid-newer" {
		t.Errorf("the new sandbox's port after the old one's DEL: %s", got)
	}
	second.as(protocol.Del).succeed(t)
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}
}
