package ovs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// open starts a real ovsdb-server with the Open_vSwitch database.
func open(t *testing.T) (*DB, func(args ...string) string) {
	t.Helper()
	remote := testkit.StartOVSDB(t, testkit.VSwitchSchema())
	vsctl := func(args ...string) string {
		return strings.TrimSpace(testkit.Run(t, "ovs-vsctl", append([]string{"--db=" + remote, "--no-wait"}, args...)...))
	}
	db, err := Open(t.Context(), remote, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, vsctl
}

func wanted() hostplan.OVS {
	return hostplan.OVS{
		ExternalIDs: map[string]string{"hostname": "n1", "ovn-encap-ip": "172.18.0.2", "ovn-bridge-datapath-type": ""},
		Defaults:    map[string]string{"foreign": "ours", "ovn-remote-probe-interval": "60000"},
		Bridges:     []hostplan.Bridge{{Name: "br-int", FailMode: "secure", DatapathType: "netdev"}},
		Ports: []hostplan.Port{{
			Bridge: "br-int", Name: "k8s-n.1", Type: "internal", MAC: "0a:58:0a:80:02:02", MTU: 1442,
			ExternalIDs: map[string]string{"iface-id": "k8s-n.1"},
		}},
	}
}

func converge(t *testing.T, db *DB) string {
	t.Helper()
	changes, err := db.Converge(t.Context(), wanted())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.String())
	}
	return strings.Join(lines, "\n")
}

func TestConverge(t *testing.T) {
	db, vsctl := open(t)
	if _, err := db.Converge(t.Context(), wanted()); !errors.Is(err, ErrNoRoot) {
		t.Fatalf("on an empty database: %v, want ErrNoRoot", err)
	}
	vsctl("init", "--", "set", "Open_vSwitch", ".", "external_ids:ovn-bridge-datapath-type=system",
		"external_ids:foreign=stays", "external_ids:hostname=old")
	testkit.Eventually(t, "the row is seen", func() string {
		if v, err := db.ExternalID("foreign"); v != "stays" {
			return fmt.Sprint(v, err)
		}
		return ""
	})
	const first = `~ external_ids:hostname=n1 (was: old)
- external_ids:ovn-bridge-datapath-type=system
+ external_ids:ovn-encap-ip=172.18.0.2
+ external_ids:ovn-remote-probe-interval=60000
+ bridge br-int fail_mode=secure datapath_type=netdev
+ port k8s-n.1 on br-int type=internal mac=0a:58:0a:80:02:02 mtu_request=1442 external_ids:iface-id=k8s-n.1`
	if got := converge(t, db); got != first {
		t.Errorf("changes:\n%s\nwant:\n%s", got, first)
	}
	const port = `k8s-n.1 "" internal "0a:58:0a:80:02:02" 1442 {iface-id=k8s-n.1}`
	show := func() string {
		return strings.Join(strings.Fields(vsctl("get", "interface", "k8s-n.1", "name", "type", "mac", "mtu_request",
			"external_ids")), " ")
	}
	if got := show(); got != strings.Replace(port, ` ""`, "", 1) {
		t.Errorf("interface %s", got)
	}
	if got := vsctl("get", "Open_vSwitch", ".",
		"external_ids"); got != `{foreign=stays, hostname=n1, ovn-encap-ip="172.18.0.2", `+
		`ovn-remote-probe-interval="60000"}` {
		t.Errorf("external_ids %s", got)
	}
	if got := vsctl("list-ports", "br-int"); got != "k8s-n.1" {
		t.Errorf("ports %s", got)
	}
	if got := vsctl("get", "interface", "br-int", "type"); got != "internal" {
		t.Errorf("type of the local port %s", got)
	}
	for _, damage := range []struct{ cmd, change string }{
		{"", ""},
		{"set bridge br-int fail_mode=standalone", "~ bridge br-int fail_mode=secure datapath_type=netdev (was: " +
			"bridge br-int fail_mode=standalone datapath_type=netdev)"},
		{"clear interface k8s-n.1 mac", "~ port"},
		{"set interface k8s-n.1 mtu_request=1500", "~ port"},
		{"set interface k8s-n.1 external_ids:iface-id=x external_ids:other=stays", "~ port"},
		{"add-br br-other -- remove bridge br-int ports k8s-n.1 -- add bridge br-other ports k8s-n.1", "~ port"},
		{"del-port k8s-n.1", "+ port"},
		{"del-br br-int", "+ bridge"},
	} {
		if damage.cmd != "" {
			cmd := damage.cmd
			if strings.Contains(cmd, "bridge br-int ports") {
				uuid := vsctl("get", "port", "k8s-n.1", "_uuid")
				cmd = strings.ReplaceAll(cmd, "ports k8s-n.1", "ports "+uuid)
			}
			vsctl(strings.Fields(cmd)...)
		}
		if damage.cmd != "" {
			testkit.Eventually(t, "the damage is seen: "+damage.cmd, func() string {
				if c, err := db.Preview(wanted()); err != nil || len(c) == 0 {
					return fmt.Sprint("no difference ", err)
				}
				return ""
			})
		}
		if got := converge(t, db); !strings.HasPrefix(got, damage.change) {
			t.Errorf("after %q the changes are:\n%s\nwant %s", damage.cmd, got, damage.change)
		}
		if got := vsctl("list-ports", "br-int"); got != "k8s-n.1" {
			t.Errorf("after %q the ports of br-int are %s", damage.cmd, got)
		}
		if again := converge(t, db); again != "" {
			t.Errorf("after %q a second time changes:\n%s", damage.cmd, again)
		}
	}
}

// Tunnels are the addresses of the ports that ovn-controller makes for other chassis.
func TestTunnels(t *testing.T) {
	db, vsctl := open(t)
	vsctl("init", "--", "add-br", "br-int", "--", "add-port", "br-int", "ovn-a-0", "--", "set", "interface", "ovn-a-0",
		"type=geneve", "options:remote_ip=172.18.0.3", "--", "add-port", "br-int", "ovn-b-0", "--", "set", "interface",
		"ovn-b-0", "type=geneve", `options:remote_ip="fd18::4"`, "--", "add-port", "br-int", "ovn-c-0", "--", "set",
		"interface", "ovn-c-0", "type=geneve", "options:remote_ip=flow")
	testkit.Eventually(t, "the tunnels are seen", func() string {
		got := db.Tunnels()
		slices.SortFunc(got, netip.Addr.Compare)
		if text := fmt.Sprint(got); text != "[172.18.0.3 fd18::4]" {
			return text
		}
		return ""
	})
}

func podPort(sandbox, pod string) hostplan.Port {
	return hostplan.PodPort("default_"+pod, "uid-"+pod, sandbox,
		annotation.PodNetwork{IPs: []netip.Prefix{netip.MustParsePrefix("10.128.2.3/23")}})
}

func TestPodPorts(t *testing.T) {
	db, vsctl := open(t)
	ctx := t.Context()
	if err := db.AddPodPort(ctx, podPort("a-sandbox-with-long-id", "web")); err == nil || !strings.Contains(err.Error(),
		"no bridge br-int") {
		t.Errorf("without a bridge: %v", err)
	}
	vsctl("init", "--", "add-br", "br-int", "--", "add-port", "br-int", "eth7")
	testkit.Eventually(t, "the bridge is seen", func() string {
		if _, ok := db.Interface("eth7"); !ok {
			return "no eth7"
		}
		return ""
	})
	// Twice: what the first attempt left is replaced.
	for range 2 {
		if err := db.AddPodPort(ctx, podPort("a-sandbox-with-long-id", "web")); err != nil {
			t.Fatal(err)
		}
	}
	state, ok := db.Interface("a-sandbox-with-")
	if !ok || state.Bridge != "br-int" || state.ExternalIDs[names.IfaceID] != "default_web" || state.Ofport != 0 ||
		state.Installed() {
		t.Errorf("state %+v %v", state, ok)
	}
	// A newer sandbox of the pod takes its logical port.
	if err := db.AddPodPort(ctx, podPort("b-sandbox-with-long-id", "web")); err != nil {
		t.Fatal(err)
	}
	if old, _ := db.Interface("a-sandbox-with-"); old.ExternalIDs[names.IfaceID] != "" ||
		old.ExternalIDs[names.IfaceSandbox] != "a-sandbox-with-long-id" {
		t.Errorf("the old sandbox's port %+v, want no iface-id", old)
	}
	// A port that no sandbox owns is left alone.
	vsctl("add-port", "br-int", "c-sandbox-with-")
	testkit.Eventually(t, "the port is seen", func() string {
		if _, ok := db.Interface("c-sandbox-with-"); !ok {
			return "no port"
		}
		return ""
	})
	if err := db.AddPodPort(ctx, podPort("c-sandbox-with-long-id", "db")); err == nil || !strings.Contains(err.Error(),
		"no pod's") {
		t.Errorf("on a foreign port: %v", err)
	}
	if got := db.Sandboxes(); len(got) != 2 {
		t.Errorf("sandboxes %v, want 2", got)
	}
	removed, err := db.RemovePodPorts(ctx, func(s string) bool { return strings.HasPrefix(s, "a-") })
	if err != nil || len(removed) != 1 || removed[0] != "a-sandbox-with-" {
		t.Errorf("removed %v, %v", removed, err)
	}
	if removed, err := db.RemovePodPorts(ctx, func(string) bool { return true }); err != nil || len(removed) != 1 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if got := vsctl("list-ports", "br-int"); got != "c-sandbox-with-\neth7" {
		t.Errorf("left are %q", got)
	}
	if got := vsctl("--columns=name", "--bare", "find", "interface", "external_ids:sandbox!=\"\""); strings.Contains(got,
		"sandbox-with-l") {
		t.Errorf("interfaces left: %q", got)
	}
}

func TestWaitInstalled(t *testing.T) {
	db, vsctl := open(t)
	vsctl("init", "--", "add-br", "br-int", "--", "add-port", "br-int", "p1")
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := db.WaitInstalled(short, "p1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting in vain: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		state, err := db.WaitInstalled(t.Context(), "p1")
		if err == nil && !state.Installed() {
			err = errors.New("not installed")
		}
		done <- err
	}()
	vsctl("set", "interface", "p1", "external_ids:ovn-installed=true")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What the Southbound database knows, read from what its server would answer.
func TestBinding(t *testing.T) {
	db, vsctl := open(t)
	vsctl("init", "--", "set", "Open_vSwitch", ".", "external_ids:system-id=me")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ask := func() string { return db.Binding(t.Context(), "default_web") }
	testkit.Eventually(t, "the database is seen", func() string {
		if got := ask(); !strings.Contains(got, "ovn-remote is not set") {
			return "got " + got
		}
		return ""
	})
	vsctl("set", "Open_vSwitch", ".", `external_ids:ovn-remote="tcp:`+l.Addr().String()+`"`)
	testkit.Eventually(t, "the remote is seen", func() string {
		if v, _ := db.ExternalID(names.OVSRemote); v == "" {
			return "no remote"
		}
		return ""
	})
	const chassis = `{"rows":[{"_uuid":["uuid","11"],"name":"me"},{"_uuid":["uuid","22"],"name":"other"}]}`
	for rows, want := range map[string]string{
		``: "has no Port_Binding default_web",
		`{"chassis":["set",[]],"up":false,"options":["map",[["requested-chassis","me"]]]}`: `port ` +
			`not bound: no chassis has claimed Port_Binding default_web (requested-chassis "me", this node is "me")`,
		`{"chassis":["uuid","22"],"up":true,"options":["map",[]]}`:  `port not bound here: chassis "other" has`,
		`{"chassis":["uuid","11"],"up":false,"options":["map",[]]}`: "flows not installed",
		`{"chassis":["uuid","11"],"up":true,"options":["map",[]]}`:  "only ovn-installed is missing",
		`{"chassis":7,"up":"x","options":3}`:                        "port not bound",
	} {
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			if _, err := c.Read(make([]byte, 4096)); err != nil {
				return
			}
			fmt.Fprintf(c, `{"id":0,"error":null,"result":[{"rows":[%s]},%s]}`, rows, chassis)
		}()
		if got := ask(); !strings.Contains(got, want) {
			t.Errorf("for %s: %q, want %q", rows, got, want)
		}
	}
	l.Close()
	if got := ask(); !strings.Contains(got, "does not answer") {
		t.Errorf("without a server: %q", got)
	}
}
