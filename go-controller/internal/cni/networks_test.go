package cni_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// inBlue is the call for an interface in the network blue.
func (c call) inBlue(ifName string) call {
	c.ifName, c.extra = ifName, map[string]any{"network": "blue"}
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
	blue := []netip.Prefix{netip.MustParsePrefix("10.128.2.0/23")} // also the cluster's own
	b.annotate(t, p, annotation.MarshalAttachments(map[string]annotation.PodNetwork{"default": p.network(),
		"blue/net1": subnet.Attachment(blue, []uint64{3}, "net1"), "blue/net2": subnet.Attachment(blue, []uint64{4}, "net2")}))
	own := add(p, idA, netns(t, "web"))
	calls := []call{own, own.inBlue("net1"), own.inBlue("net2")}
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
	gc.extra = map[string]any{"cni.dev/valid-attachments": []any{}, "network": "blue"}
	gc.succeed(t) // of the other network: it does not know this container
	there(true, true, true)
	gc.extra = map[string]any{"cni.dev/valid-attachments": []any{}}
	gc.succeed(t)
	if got := left(t); got != "" {
		t.Errorf("left on the node after GC:\n%s", got)
	}
}
