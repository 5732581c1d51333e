package ovspod_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ovspod"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) {
	os.Exit(testkit.RunWith(m, "github.com/northbound-net/northbound/go-controller/cmd/ovnkube"))
}

// pod is a pod of Open vSwitch, with the userspace datapath.
type pod struct {
	ovspod.Layout
	t *testing.T
}

func newPod(t *testing.T) *pod {
	t.Helper()
	t.Setenv("OVS_RUNDIR", "/run/openvswitch")
	return &pod{t: t, Layout: ovspod.Layout{
		Sockets: "/run/openvswitch", File: "/var/lib/openvswitch/conf.db", Schema: testkit.VSwitchSchema(),
	}}
}

// start runs a container until stop is called, which returns its error.
func start(t *testing.T, run func(context.Context) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// end ends containers at the same time.
func end(t *testing.T, containers ...func() error) {
	t.Helper()
	errs := make([]error, len(containers))
	var running sync.WaitGroup
	for i, stop := range containers {
		running.Go(func() { errs[i] = stop() })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func (p *pod) database() ovspod.Database {
	return ovspod.Database{Layout: p.Layout, Log: slog.New(slog.DiscardHandler)}
}

func (p *pod) vswitchd() ovspod.Switch {
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	return ovspod.Switch{Layout: p.Layout, Datapath: config.DatapathNetdev, Log: log,
		Tunnel: ovspod.Tunnel{Server: "https://127.0.0.1:6443", Log: log}}
}

// ready waits until ovs-vswitchd handles packets.
func (p *pod) ready() {
	p.t.Helper()
	testkit.Eventually(p.t, "ovs-vswitchd handles packets", func() string {
		out, err := exec.Command("ovs-vsctl", "--no-wait", "get", "Open_vSwitch", ".", "other_config").CombinedOutput()
		if err != nil || strings.Contains(string(out), "flow-restore-wait") {
			return "got " + string(out)
		}
		out, err = exec.Command("ovs-appctl", "version").CombinedOutput()
		if err != nil {
			return "got " + string(out)
		}
		return ""
	})
}

func (p *pod) run(name string, args ...string) string {
	p.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}

// flows are those of br-int, with all that they refer to.
func (p *pod) flows() string {
	p.t.Helper()
	var all string
	for _, dump := range []string{"dump-tlv-map", "dump-meters", "dump-groups"} {
		all += p.run("ovs-ofctl", "-OOpenFlow15", dump, "br-int")
	}
	return all + p.run("ovs-ofctl", "-OOpenFlow15", "--no-stats", "dump-flows", "br-int")
}

// A new pod's ovs-vswitchd has the flows of the one before, and the database that was there. A pod without bridges
// leaves nothing.
func TestReplaced(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	p := newPod(t)
	endDatabase, endSwitch := start(t, p.database().Run), start(t, p.vswitchd().Run)
	p.ready()
	p.run("ovs-vsctl", "--timeout=10", "add-br", "br-int", "--", "set", "bridge", "br-int", "datapath_type=netdev",
		"fail_mode=secure")
	for _, args := range [][]string{
		{"add-tlv-map", "br-int", "{class=0x102,type=0x80,len=4}->tun_metadata0"},
		{"add-meter", "br-int", "meter=1,pktps,stats,bands=type=drop,rate=10"},
		{"add-group", "br-int", "group_id=1,type=select,bucket=bucket_id=0,weight=100,actions=drop"},
		{"add-flow", "br-int", "cookie=7,table=0,priority=100,in_port=1,actions=load:5->OXM_OF_METADATA[],resubmit(,8)"},
		{"add-flow", "br-int", "table=8,ip,nw_proto=2,tun_metadata0=3,actions=controller(meter_id=1)"},
		{"add-flow", "br-int", "table=8,ip,actions=group:1"},
	} {
		p.run("ovs-ofctl", append([]string{"-OOpenFlow15"}, args...)...)
	}
	before, uuid := p.flows(), p.run("ovs-vsctl", "get", "bridge", "br-int", "_uuid")
	end(t, endDatabase, endSwitch) // as the kubelet ends containers: at the same time

	endDatabase, endSwitch = start(t, p.database().Run), start(t, p.vswitchd().Run)
	p.ready()
	if after := p.flows(); withoutIDs(after) != withoutIDs(before) {
		t.Errorf("flows were\n%s\nare\n%s", before, after)
	}
	if now := p.run("ovs-vsctl", "get", "bridge", "br-int", "_uuid"); now != uuid {
		t.Errorf("bridge br-int was %s, is %s", uuid, now)
	}

	p.run("ovs-vsctl", "--timeout=10", "del-br", "br-int")
	p.run("touch", p.Sockets+"/ovs-vswitchd.1.ctl") // of a daemon that was killed
	end(t, endDatabase, endSwitch)
	for _, dir := range []string{p.Sockets, filepath.Dir(p.File)} {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("%s has %v, %v; want nothing", dir, left, err)
		}
	}
	links, err := net.Interfaces()
	if err != nil || len(links) != 1 {
		t.Errorf("links %v, %v; want the loopback alone", links, err)
	}
}

// withNIC makes the NIC nic0 with 192.0.2.1/24, starts the database, and prepares ovs-vswitchd.
func (p *pod) withNIC() ovspod.Switch {
	p.t.Helper()
	p.run("ip", "link", "add", "nic0", "type", "veth", "peer", "name", "wire")
	p.run("ip", "address", "add", "192.0.2.1/24", "dev", "nic0")
	p.run("ip", "link", "set", "nic0", "up")
	start(p.t, p.database().Run)
	return p.vswitchd()
}

// The NIC of tunnels goes into a bridge, and the database has its address.
func TestTunnel(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	p := newPod(t)
	s := p.withNIC()
	s.Tunnel.Interface, s.Tunnel.Undo, s.Tunnel.OVS = "nic0", t.TempDir(), "unix:/run/openvswitch/db.sock"
	s.Tunnel.Ovnkube = testkit.Program(t, "ovnkube")
	start(t, s.Run)
	p.ready()
	if got := p.run("ovs-vsctl", "get", "Open_vSwitch", ".", "external_ids:ovn-encap-ip"); got != "\"192.0.2.1\"\n" {
		t.Errorf("ovn-encap-ip is %s, want that of nic0", got)
	}
	testkit.Eventually(t, "nic0 is in the bridge", func() string {
		out, err := exec.Command("ip", "-4", "-oneline", "address", "show").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "192.0.2.1/24 brd 192.0.2.255 scope global brnic0") &&
			!strings.Contains(string(out), "192.0.2.1/24 scope global brnic0") {
			return "got " + string(out)
		}
		return ""
	})
}

// withoutIDs is an output of ovs-ofctl without the numbers of messages.
func withoutIDs(out string) string {
	var all []string
	for line := range strings.Lines(out) {
		before, _, _ := strings.Cut(line, " (xid=")
		all = append(all, strings.TrimSpace(before))
	}
	return strings.Join(all, "\n")
}

// Flows that somebody has installed meanwhile are newer than those that were saved.
func TestNewerFlowsStay(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	p := newPod(t)
	start(t, p.database().Run)
	start(t, p.vswitchd().Run)
	p.ready()
	p.run("ovs-vsctl", "--timeout=10", "add-br", "br-int", "--", "set", "bridge", "br-int", "datapath_type=netdev",
		"fail_mode=secure")
	p.run("ovs-ofctl", "add-flow", "br-int", "table=0,priority=100,in_port=1,actions=drop")
	f := ovspod.Flows{Layout: p.Layout}
	if err := f.Save(t.Context()); err != nil || !f.Saved() {
		t.Fatal(err, f.Saved())
	}
	p.run("ovs-ofctl", "--strict", "del-flows", "br-int", "table=0,priority=100,in_port=1")
	p.run("ovs-ofctl", "add-flow", "br-int", "table=0,priority=100,in_port=2,actions=drop")
	if err := f.Restore(t.Context()); err == nil || !strings.Contains(err.Error(), "OVERLAP") {
		t.Errorf("restoring: %v, want an error with OVERLAP", err)
	}
	if got := p.flows(); strings.Contains(got, "in_port=1") || !strings.Contains(got, "in_port=2") {
		t.Errorf("flows are\n%s\nwant the newer one alone", got)
	}
}

// The machine's own Open vSwitch is left alone, and so is a database that is not ours.
func TestHostRuns(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.StartVSwitch(t)
	p := newPod(t)
	p.Sockets = os.Getenv("OVS_RUNDIR")
	for name, run := range map[string]func(context.Context) error{
		"database": p.database().Run, "switch": p.vswitchd().Run,
	} {
		if err := run(t.Context()); !errors.Is(err, ovspod.ErrHostRuns) {
			t.Errorf("%s: %v, want %v", name, err, ovspod.ErrHostRuns)
		}
	}
}

// A node that reaches the API server by a port of the userspace datapath would be cut off.
func TestCutOff(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	p := newPod(t)
	s := p.withNIC()
	s.Tunnel.Interface, s.Tunnel.Server = "nic0", "https://192.0.2.9:6443"
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := s.Run(ctx)
	const want = "this node reaches the API server https://192.0.2.9:6443 by nic0"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}
