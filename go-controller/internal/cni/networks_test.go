package cni_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// inNetwork is the call for an interface in another network.
func (c call) inNetwork(network, key, ifName string) call {
	c.ifName, c.extra = ifName, map[string]any{"name": network, "netAttachDefName": key}
	return c
}

// A container has an interface in the cluster's own network and two in another: three pairs and three ports. DEL
// removes one and leaves the others, in any order. GC removes all of a container that is gone.
func TestSeveralInterfaces(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	p := web()
	b.create(t, p, false)
	value := annotation.SetPodNetwork("", "default", annotation.RolePrimary, p.network())
	keys := map[string]string{"net1": "team/blue", "net2": "team/blue/1"}
	for i, ifName := range []string{"net1", "net2"} {
		// The same subnets as the cluster's own, and other routes.
		ips := []netip.Prefix{netip.MustParsePrefix([]string{"10.128.2.3/23", "10.128.2.4/23"}[i])}
		value = annotation.SetPodNetwork(value, keys[ifName], annotation.RoleSecondary, annotation.PodNetwork{IPs: ips,
			MAC: ipnet.MACFor(ipnet.Addrs(ips))})
	}
	b.annotate(t, p, value)
	own := add(p, idA, netns(t, "web"))
	calls := []call{own, own.inNetwork("blue", keys["net1"], "net1"), own.inNetwork("blue", keys["net2"], "net2")}
	ids := []string{idA, names.AttachmentID(idA, "net1"), names.AttachmentID(idA, "net2")}
	ports := []string{"default_web", "blue_default_web_net1", "blue_default_web_net2"}
	addAll := func() {
		t.Helper()
		for i, c := range calls {
			install(t, ids[i])
			result := c.succeed(t)
			if got := strings.Trim(strings.TrimSpace(testkit.Run(t, "ovs-vsctl", "get", "interface", names.HostVeth(ids[i]),
				"external_ids:iface-id")), `"`); got != ports[i] {
				t.Errorf("iface-id %s, want %s", got, ports[i])
			}
			c.as(protocol.Check).after(result).succeed(t)
		}
	}
	there := func(want ...bool) {
		t.Helper()
		list := " " + strings.Join(strings.Fields(testkit.Run(t, "ovs-vsctl", "list-ports", "br-int")), " ") + " "
		for i, id := range ids {
			name := names.HostVeth(id)
			_, err := net.InterfaceByName(name)
			if (err == nil) != want[i] || strings.Contains(list, " "+name+" ") != want[i] {
				t.Errorf("interface %s: %v, ports %s; want it there: %v", name, err, list, want[i])
			}
		}
	}
	addAll()
	there(true, true, true)
	if got := testkit.Run(t, "ip", "-n", "web", "-br", "link"); !strings.Contains(got, "eth0@") ||
		!strings.Contains(got, "net1@") || !strings.Contains(got, "net2@") {
		t.Errorf("in the pod: %s", got)
	}
	calls[1].fail(t, protocol.CodeInvalidEnv, "CNI_IFNAME is taken", names.HostVeth(ids[1]))
	calls[1].as(protocol.Del).succeed(t)
	there(true, false, true)
	own.as(protocol.Del).succeed(t)
	there(false, false, true)
	calls[2].as(protocol.Del).succeed(t)
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}

	addAll()
	gc := call{command: protocol.GC, version: "1.1.0"}
	gc.extra = map[string]any{"cni.dev/valid-attachments": []map[string]string{{"containerID": idA, "ifname": "eth0"}}}
	gc.succeed(t)
	there(true, true, true)
	gc.extra = map[string]any{"cni.dev/valid-attachments": []any{}, "netAttachDefName": "team/blue", "name": "blue"}
	gc.succeed(t) // of the other network: it does not know this container
	there(true, true, true)
	gc.extra = map[string]any{"cni.dev/valid-attachments": []any{}}
	gc.succeed(t)
	if got := left(t); got != "" {
		t.Errorf("left on the node after GC:\n%s", got)
	}
}
