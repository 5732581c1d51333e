package cni_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// macvlanPod makes the pod web, which asks for a macvlan.
func (b *bed) macvlanPod(t *testing.T, value string, privileged bool) {
	t.Helper()
	obj := web().object()
	obj.Annotations[annotation.PodMacvlan] = value
	obj.Spec.InitContainers = []corev1.Container{{Name: "set-up"}}
	if privileged {
		obj.Spec.InitContainers[0].SecurityContext = &corev1.SecurityContext{Privileged: &privileged}
	}
	if _, err := b.client.CoreV1().Pods("default").Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A privileged pod gets the macvlan that it asks for, without addresses, on the interface with the default route or on
// another. Its frames reach a host on the network of that interface, and the host's reach the pod. Other pods don't
// start.
func TestMacvlan(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	b.startOVN(t, true)
	logicalPort(t, web())
	for _, nic := range []string{"nic0", "nic1"} {
		testkit.Run(t, "ip", "netns", "add", "host-"+nic)
		testkit.Run(t, "ip", "link", "add", nic, "mtu", "1400", "type", "veth", "peer", "name", nic, "netns", "host-"+nic)
		testkit.Run(t, "ip", "link", "set", nic, "up")
		testkit.Run(t, "ip", "-n", "host-"+nic, "addr", "add", "192.0.2.1/24", "dev", nic)
		testkit.Run(t, "ip", "-n", "host-"+nic, "addr", "add", "2001:db8::1/64", "dev", nic, "nodad")
		testkit.Run(t, "ip", "-n", "host-"+nic, "link", "set", nic, "up")
	}
	a := add(web(), idA, netns(t, "web")).in("1.1.0")
	end := func() {
		t.Helper()
		a.as(protocol.Del).succeed(t)
		b.delete(t, "web")
		b.awaitGone(t, "web") // the next one has its UID
		if got := testkit.Run(t, "ip", "-n", "web", "-br", "link"); strings.Contains(got, "macvlan0") ||
			strings.Contains(got, "eth0") {
			t.Errorf("left in the container: %s", got)
		}
	}
	refused := func(value string, privileged bool, words ...string) {
		t.Helper()
		b.macvlanPod(t, value, privileged)
		a.fail(t, protocol.CodeInterface, words...)
		if got := testkit.Run(t, "ip", "-n", "web", "-br", "link"); strings.Contains(got, "macvlan0") {
			t.Errorf("after a refused ADD: %s", got)
		}
		end()
	}
	refused("true", false, annotation.PodMacvlan, "only a pod with a privileged container", "privileged: true")
	refused("no such", true, `want "true", or the name of an interface of the node`)
	refused("gone0", true, "no such interface on the node: gone0", "nic0")
	refused("true", true, "the node has no default route")
	testkit.Run(t, "ip", "route", "add", "default", "dev", "nic1", "metric", "20")
	testkit.Run(t, "ip", "route", "add", "default", "dev", "nic0", "metric", "10")
	for value, nic := range map[string]string{"true": "nic0", "nic1": "nic1"} {
		b.macvlanPod(t, value, true)
		install(t, idA)
		result := a.succeed(t)
		if strings.Contains(string(result), "macvlan0") {
			t.Errorf("the result has the macvlan: %s", result)
		}
		if got := testkit.Run(t, "ip", "-n", "web", "-d", "link", "show", "macvlan0"); !strings.Contains(got, "mtu 1400") ||
			!strings.Contains(got, "macvlan mode private") || !strings.Contains(got, "state UP") {
			t.Errorf("%s: %s", value, got)
		}
		if got := testkit.Run(t, "ip", "-n", "web", "-br", "addr", "show", "dev", "macvlan0", "scope", "global"); strings.
			Contains(got, "/") {
			t.Errorf("%s: the macvlan has addresses: %s", value, got)
		}
		testkit.Run(t, "ip", "-n", "web", "addr", "add", "192.0.2.7/24", "dev", "macvlan0")
		testkit.Run(t, "ip", "-n", "web", "addr", "add", "2001:db8::7/64", "dev", "macvlan0", "nodad")
		for _, to := range []string{"192.0.2.1", "2001:db8::1"} {
			testkit.Run(t, "ip", "netns", "exec", "web", "ping", "-c1", "-w5", "-I", "macvlan0", to)
		}
		have := testkit.Run(t, "ip", "-n", "host-"+nic, "neigh", "show", "192.0.2.7")
		mac := testkit.Run(t, "ip", "netns", "exec", "web", "cat", "/sys/class/net/macvlan0/address")
		if !strings.Contains(have, strings.TrimSpace(mac)) {
			t.Errorf("the host on %s knows the pod as %q, want MAC %s", nic, have, mac)
		}
		a.as(protocol.Check).after(result).succeed(t)
		// A second ADD for a container that is served is refused, and takes nothing from it.
		a.fail(t, protocol.CodeInvalidEnv, "CNI_IFNAME is taken")
		testkit.Run(t, "ip", "-n", "web", "link", "show", "macvlan0")
		a.as(protocol.Check).after(result).succeed(t)
		end()
	}
	// A pod that says it asks for none.
	b.macvlanPod(t, "false", false)
	install(t, idA)
	a.succeed(t)
	end()
}
