package nicmove_test

import (
	"os"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// An interface that cannot be moved is refused with one clear line, and nothing changes.
func TestRefusals(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	vs := setUp(t, wires+`
ip link add br0 type bridge; ip link add m0 type veth peer name m1; ip link set m1 master br0
ip link add link m0 name mv0 type macvlan
ip link add brm0 type veth peer name brm1
for l in enp129s0f0np12 enp129s0f0np13x; do ip link add $l type veth; done
ip link add nh0 type veth peer name nh1; ip link set nh0 up; ip link set nh1 up; ip addr add 10.20.0.1/24 dev nh0
ip nexthop add id 7 via 10.20.0.9 dev nh0; ip route add 10.21.0.0/16 nhid 7
ip link add q0 type veth peer name q1; ip link add r0 type veth peer name r1`)
	testkit.Run(t, "sh", "-ec", "ovs-vsctl add-br brx -- set bridge brx datapath_type=netdev -- add-port brx eth1 -- "+
		"add-br brq0 -- set bridge brq0 datapath_type=netdev")
	was := testkit.Run(t, "ovs-vsctl", "show") + testkit.Run(t, "ip", "route")
	for nics, want := range map[string]string{
		"nosuch": "nosuch: there is no such interface: this host has br0, brm0, ",
		"lo":     "lo: it is a loopback interface: want a NIC",
		"br0":    `br0: it is of kind "bridge": want a NIC, or a bond or VLAN interface`,
		"m1":     "m1: it is a part of br0: give that one, or take the NIC out of it first",
		"eth1":   "eth1: it is in the Open vSwitch bridge brx already",
		"m0": "m0: the interface mv0 (macvlan) is on top of it and would get no more frames: " +
			"remove that first",
		"nh0": "nh0: reading routes of nh0: route 10.21.0.0/16 via 10.20.0.9 dev nh0 proto " +
			"boot attribute 30 0x07000000 uses a nexthop object",
		"q0": "q0: there is an Open vSwitch bridge brq0 already that has no " +
			"external_ids:bridge-uplink: remove or rename it",
		"enp129s0f0np12 enp129s0f0np13x": "enp129s0f0np12 and enp129s0f0np13x would both go into bridge brenp129s0f0np1, " +
			"as names of interfaces have at most 15 characters: rename one of them",
		"eth0 eth0": "eth0 is given twice",
	} {
		c := forward()
		c.NICs = strings.Fields(nics)
		out, err := run(t, c)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("%s: %v\n%s\nwant: %s", nics, err, out, want)
		}
	}
	testkit.Run(t, "sh", "-ec", "ip link del mv0")
	c := forward()
	c.NICs = []string{"m0"}
	if _, err := run(t, c); err == nil || err.Error() != "m0: there is an interface brm0 already, and it is no Open "+
		"vSwitch bridge: remove or rename it" {
		t.Errorf("m0: %v", err)
	}
	if now := testkit.Run(t, "ovs-vsctl", "show") + testkit.Run(t, "ip", "route"); now != was {
		t.Errorf("the host was:\n%s\nis:\n%s", was, now)
	}
	if files, err := os.ReadDir(stateDir); err != nil || len(undoFiles(files)) != 0 {
		t.Errorf("files: %v %v", files, err)
	}

	refuseSameBridge(t)
	refuseBroken(t, vs)
}

// Two names that are cut to the name of the same bridge, in two calls.
func refuseSameBridge(t *testing.T) {
	t.Helper()
	c := forward()
	c.Target, c.Options.Unconfirmed = "", true
	c.NICs = []string{"enp129s0f0np12"}
	mustRun(t, c)
	c.NICs = []string{"enp129s0f0np13x"}
	if _, err := run(t, c); err == nil || !strings.HasPrefix(err.Error(),
		"enp129s0f0np13x: its bridge would be brenp129s0f0np1 (names of interfaces have at most 15 characters), which is "+
			"that of enp129s0f0np12: rename one of them") {
		t.Errorf("the second of two: %v", err)
	}
	c.NICs, c.Options.Datapath = []string{"enp129s0f0np12"}, "system"
	if _, err := run(t, c); err == nil ||
		err.Error() != "enp129s0f0np12: bridge brenp129s0f0np1 has datapath_type=netdev, not system: run bridges-to-nic "+
			"brenp129s0f0np1 first" {
		t.Errorf("another datapath: %v", err)
	}
	mustRun(t, call{Bridges: []string{"brenp129s0f0np1"}})
	if _, err := run(t, call{Bridges: []string{"brx"}}); err == nil || !strings.HasPrefix(err.Error(),
		"brx: it has no external_ids:bridge-uplink, so its NIC is unknown") {
		t.Errorf("the return from a foreign bridge: %v", err)
	}

}

// A malformed undo file, and an Open vSwitch that does not run.
func refuseBroken(t *testing.T, vs *testkit.VSwitch) {
	t.Helper()
	if err := os.WriteFile(stateDir+"/r0.json", []byte(`{"version": 2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := forward()
	c.NICs = []string{"r0"}
	if _, err := run(t, c); err == nil || !strings.HasPrefix(err.Error(),
		"r0: reading the undo file /run/nics/r0.json: it has version 2") {
		t.Errorf("with a broken undo file: %v", err)
	}
	vs.StopDaemon(t)
	if out, err := run(t, forward()); err == nil || !strings.HasPrefix(err.Error(),
		"eth0: ovs-vswitchd does not carry out what is in its database: does it run?") || out != "" {
		t.Errorf("without ovs-vswitchd: %v\n%s", err, out)
	}
	vs.StopDB(t)
	if _, err := run(t, forward()); err == nil || !strings.HasPrefix(err.Error(),
		"connecting to the Open vSwitch database at unix:/run/openvswitch/db.sock: ") {
		t.Errorf("without ovsdb-server: %v", err)
	}
}

// undoFiles lists the files of the state directory that are not locks.
func undoFiles(files []os.DirEntry) (out []string) {
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".lock") {
			out = append(out, f.Name())
		}
	}
	return out
}
