package cni_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// inNetwork is the call of a delegating plugin for an interface in a network.
func (c call) inNetwork(network, ifName string) call {
	c.ifName, c.extra = ifName, map[string]any{"network": network}
	return c
}

// addByOVN is the ADD of a pod whose ports are OVN's, which has succeeded, and its result.
func (b *bed) addByOVN(t *testing.T) (own call, result json.RawMessage) {
	t.Helper()
	b.startOVN(t, true)
	p := tenant()
	logicalPort(t, p)
	b.create(t, p, true)
	own = add(p, idA, netns(t, "web")).in("1.1.0")
	return own, own.succeed(t)
}

// A delegating plugin such as Multus asks for interfaces that the ADD of the cluster's own network has made already. It
// gets their results, and its DEL removes the one that it is about.
func TestDelegatedRequests(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	own, result := b.addByOVN(t)
	blue, lan := own.inNetwork("shop.blue", "net1"), own.inNetwork("shop.lan", "net2")
	before := finishedVeths(t)
	for range 2 {
		got := blue.succeed(t)
		blue.as(protocol.Check).after(got).succeed(t)
		wantDelegated(t, got)
		lan.as(protocol.Check).after(lan.succeed(t)).succeed(t)
	}
	// The configuration of a definition, as Multus hands it on.
	byName := own
	byName.ifName, byName.extra = "net1", map[string]any{"topology": "layer2", "netAttachDefName": "shop/blue"}
	wantDelegated(t, byName.succeed(t))
	if after := finishedVeths(t); after != before {
		t.Errorf("interfaces before:\n%s\nafter:\n%s", before, after)
	}
	own.as(protocol.Check).after(result).succeed(t)
	own.inNetwork("shop.green", "net1").isAnother(t, b)

	// One that is not what is asked for is refused, and stays.
	testkit.Run(t, "ip", "-n", "web", "link", "set", "net1", "mtu", "1280")
	blue.fail(t, protocol.CodeInvalidEnv, "CNI_IFNAME is taken", "MTU of net1 is 1280, want 1300")
	testkit.Run(t, "ip", "-n", "web", "link", "set", "net1", "mtu", "1300")
	own.as(protocol.Check).after(result).succeed(t)

	// DEL of one, and another ADD of it.
	blue.as(protocol.Del).succeed(t)
	blue.as(protocol.Del).succeed(t)
	own.as(protocol.Check).after(result).fail(t, protocol.CodeCheck, "interface net1 is not in the container")
	if got := testkit.Run(t, "ip", "-n", "web", "-br", "link"); strings.Contains(got, "net1@") ||
		!strings.Contains(got, "eth0@") || !strings.Contains(got, "net2@") {
		t.Errorf("in the pod after DEL of net1: %s", got)
	}
	blue.succeed(t)
	own.as(protocol.Check).after(result).succeed(t)

	// GC of another network's list does not know this container, whether or not the runtime names an interface.
	gc := call{command: protocol.GC, version: "1.1.0"}
	gc.extra = map[string]any{"cni.dev/valid-attachments": []any{}, "network": "shop.blue"}
	gc.succeed(t)
	gc.drop = "CNI_IFNAME"
	gc.succeed(t)
	own.as(protocol.Check).after(result).succeed(t)
	lan.as(protocol.Del).succeed(t)
	own.as(protocol.Del).succeed(t)
	blue.as(protocol.Del).succeed(t)
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}
}

// finishedVeths is what `ip link` says of the pods' veths on the node. The runtime has its answer a moment before the
// agent marks the interfaces as finished, so it waits for that.
func finishedVeths(t *testing.T) string {
	t.Helper()
	var veths string
	testkit.Eventually(t, "interfaces are finished", func() string {
		veths = testkit.Run(t, "ip", "-o", "link", "show", "type", "veth")
		if strings.Contains(veths, "alias unfinished") {
			return "got " + veths
		}
		return ""
	})
	return veths
}

// Behind Multus the ADD of eth0 makes that alone: Multus refuses to ask for an interface that is there. It then asks
// for each by the configuration of its definition, which perhaps does not say whose it is.
func TestBehindMultus(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	b.stop()
	b.startServer(t, func(s *server.Server) {
		s.Timeout, s.MultusFirst = 20*time.Second, func() bool { return true }
	})
	own, result := b.addByOVN(t)
	if got := testkit.Run(t, "ip", "-n", "web", "-br", "link"); !strings.Contains(got, "eth0@") ||
		strings.Contains(got, "net") {
		t.Errorf("in the pod after the ADD of eth0: %s", got)
	}
	blue, lan := own, own
	blue.ifName, blue.extra = "net1", map[string]any{"type": names.OverlayPlugin, "topology": "layer2"}
	lan.ifName = "net2"
	lan.extra = map[string]any{"type": names.OverlayPlugin, "topology": "localnet", "netAttachDefName": "shop/lan"}
	got := blue.succeed(t)
	wantDelegated(t, got)
	blue.as(protocol.Check).after(got).succeed(t)
	lan.as(protocol.Check).after(lan.succeed(t)).succeed(t)
	own.as(protocol.Check).after(result).succeed(t)

	lan.as(protocol.Del).succeed(t)
	blue.as(protocol.Del).succeed(t)
	if got := testkit.Run(t, "ip", "-n", "web", "-br", "link"); !strings.Contains(got, "eth0@") ||
		strings.Contains(got, "net") {
		t.Errorf("in the pod after DEL of the further interfaces: %s", got)
	}
	own.as(protocol.Del).succeed(t)
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}
}

// isAnother checks that an interface of the container is not taken for that of another network.
func (c call) isAnother(t *testing.T, b *bed) {
	t.Helper()
	other := tenant()
	other.further["shop.green/net1"] = other.further["shop.blue/net1"]
	delete(other.further, "shop.blue/net1")
	b.annotate(t, other, other.annotation())
	testkit.Eventually(t, "it is another network", func() string {
		if _, err := c.run(t); err == nil || !strings.Contains(err.Error(), "shop.green_default_web_net1") {
			return "the interface of another network is taken for it"
		}
		return ""
	})
	b.annotate(t, other, tenant().annotation())
}

// wantDelegated checks the result of an ADD for net1.
func wantDelegated(t *testing.T, raw json.RawMessage) {
	t.Helper()
	const want = `{"cniVersion":"1.1.0","interfaces":[{"name":"HOST","mac":"MAC","mtu":1300},{"name":"net1",` +
		`"mac":"0a:58:0a:63:00:03","mtu":1300,"sandbox":"/run/netns/web"}],"ips":[{"interface":1,` +
		`"address":"10.99.0.3/24"},{"interface":1,"address":"fd99::3/64"}],"routes":[{"dst":"10.99.0.0/16",` +
		`"gw":"10.99.0.1"},{"dst":"fd99::/48","gw":"fd99::1"}]}`
	host := names.HostVeth(names.AttachmentID(idA, "net1"))
	mac, err := exec.Command("cat", "/sys/class/net/"+host+"/address").Output()
	if err != nil {
		t.Fatal(err)
	}
	full := strings.NewReplacer("HOST", host, "MAC", strings.TrimSpace(string(mac))).Replace(want)
	var have, wanted any
	if json.Unmarshal(raw, &have) != nil || json.Unmarshal([]byte(full), &wanted) != nil {
		t.Fatalf("no JSON: %s", raw)
	}
	h, _ := json.Marshal(have)
	w, _ := json.Marshal(wanted)
	if string(h) != string(w) {
		t.Errorf("result:\n%s\nwant:\n%s", h, w)
	}
}
