package cni_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// stuck starts an ADD that cannot end by itself, calls while once its port is in Open vSwitch, and ends it by deleting
// the pod. It returns the plugin's error.
func (b *bed) stuck(t *testing.T, p pod, a call, while func()) string {
	t.Helper()
	b.create(t, p, true)
	port := make(chan struct{}, 1)
	b.startServer(t, func(s *server.Server) {
		s.Timeout = time.Hour
		s.Reached = func(step string) {
			if step == server.StepPort {
				port <- struct{}{}
			}
		}
	})
	defer b.stop()
	var out bytes.Buffer
	cmd := a.cmd(t.Context(), t)
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-port
	testkit.Run(t, "ovs-vsctl", "--timeout=20", "wait-until", "interface", names.HostVeth(a.id), "ofport>0")
	while()
	b.delete(t, p.name)
	if err := cmd.Wait(); err == nil {
		t.Fatalf("ADD succeeded: %s", out.String())
	}
	return out.String()
}

// The error of the flows phase has the port's state in the Southbound database, and says what to check.
func TestFlowsPhaseSaysWhatIsMissing(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, time.Hour)
	b.stop()
	b.startOVN(t, false)
	p := web()
	a := add(p, idA, netns(t, p.name))
	expect := func(have string, words ...string) {
		t.Helper()
		for _, w := range append(words, `"code": 11`, "OVN has not set up the port of pod default/web",
			"the pod was deleted meanwhile") {
			if !strings.Contains(have, w) {
				t.Errorf("ADD says:\n%s\nwant it to say %q", have, w)
			}
		}
		if got := left(t); got != "" {
			t.Errorf("left on the node:\n%s", got)
		}
	}
	expect(b.stuck(t, p, a, func() {}), "has no Port_Binding default_web", "ovnkube master", "ovn-northd")

	logicalPort(t, p)
	testkit.Run(t, "ovn-sbctl", "--timeout=20", "wait-until", "Port_Binding", "default_web")
	expect(b.stuck(t, p, a, func() {

	}), "port not bound: no chassis has claimed Port_Binding default_web", "does ovn-controller run here")

	// ovn-controller claims the port and cannot install its flows: first ovn-controller is stopped until the device is
	// open, and then ovs-vswitchd is.
	startController(t)
	const controller, vswitchd = "/run/ovn/ovn-controller.pid", "/run/openvswitch/ovs-vswitchd.pid"
	signal(t, "STOP", controller)
	expect(b.stuck(t, p, a, func() {
		signal(t, "STOP", vswitchd)
		signal(t, "CONT", controller)
		isBound(t, p)
	}), "flows not installed: this node has bound Port_Binding default_web", "ovn-controller's log")
	signal(t, "CONT", vswitchd)
}

// refusing is an Open vSwitch that does not remove the port of one container.
type refusing struct {
	server.Switch
	sandbox string
}

func (r refusing) RemovePodPorts(ctx context.Context, gone func(string) bool) ([]string, error) {
	if gone(r.sandbox) {
		return nil, errors.New("the switch refuses")
	}
	return r.Switch.RemovePodPorts(ctx, gone)
}

// GC continues after an error, and then reports it.
func TestGCGoesOn(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	ids := []string{"aaaa-container-of-gc", "bbbb-container-of-gc", "cccc-container-of-gc"}
	for i, id := range ids {
		p := numbered(i)
		b.create(t, p, true)
		install(t, id)
		add(p, id, netns(t, p.name)).succeed(t)
	}
	b.stop()
	b.startServer(t, func(s *server.Server) { s.Switch = refusing{s.Switch, ids[1]} })
	gc := call{command: protocol.GC, version: "1.1.0", extra: map[string]any{"cni.dev/valid-attachments": nil}}
	gc.fail(t, protocol.CodeTryAgain, "some containers' interfaces could not be removed", "the switch refuses")
	if got := strings.Fields(testkit.Run(t, "ovs-vsctl", "list-ports", "br-int")); len(got) != 1 ||
		got[0] != names.HostVeth(ids[1]) {
		t.Errorf("ports after GC: %v, want the one that could not be removed", got)
	}
	b.stop()
	b.startServer(t, func(*server.Server) {})
	gc.succeed(t)
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}
}

// Without ovsdb-server, the verbs report that. DEL succeeds, and its port is removed as soon as the server is back.
func TestNoOpenVSwitch(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, time.Second)
	p := web()
	b.create(t, p, true)
	a := add(p, idA, netns(t, p.name)).in("1.1.0")
	install(t, idA)
	result := a.succeed(t)
	b.vs.StopDB(t)
	testkit.Eventually(t, "the agent has noticed", func() string {
		if b.server.Switch.Connected() {
			return "it is connected"
		}
		return ""
	})
	a.as(protocol.Check).after(result).fail(t, protocol.CodeTryAgain, "Open vSwitch does not answer", "ovsdb-server")
	gc := a.as(protocol.GC)
	gc.extra = map[string]any{"cni.dev/valid-attachments": []any{}}
	gc.fail(t, protocol.CodeTryAgain, "some containers' interfaces could not be removed")
	add(p, idB, netns(t, "second")).fail(t, protocol.CodeTryAgain, "adding the port of pod default/web to Open vSwitch",
		"ovsdb-server")
	a.as(protocol.Del).succeed(t)
	if got := testkit.Run(t, "ip", "-br", "link", "show", "type", "veth"); got != "" {
		t.Errorf("left in the kernel: %s", got)
	}
	b.vs.StartDB(t)
	testkit.Eventually(t, "nothing is left", func() string { return left(t) })
}
