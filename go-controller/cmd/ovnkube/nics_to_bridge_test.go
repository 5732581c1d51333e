package main

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const bridgeUnit = "../../../dist/systemd/ovnkube-bridge@.service"

// systemd accepts the unit file, and ovnkube has the flags that the unit uses.
func TestBridgeUnit(t *testing.T) {
	text, err := os.ReadFile(bridgeUnit)
	if err != nil {
		t.Fatal(err)
	}
	const start = "ExecStart=/usr/bin/ovnkube "
	found := 0
	for line := range strings.Lines(string(text)) {
		args, ok := strings.CutPrefix(strings.TrimSpace(line), start)
		if !ok {
			continue
		}
		found++
		var nics []string
		boot := false
		command := nicsToBridgeCommand()
		command.Before, command.Action = nil, func(c *cli.Context) error {
			boot = c.Bool("boot")
			nics = c.Args().Slice()
			return nil
		}
		app := &cli.App{Commands: []*cli.Command{command}, ExitErrHandler: func(*cli.Context, error) {}}
		if err := app.Run(append([]string{"ovnkube"}, strings.Fields(args)...)); err != nil || !boot ||
			!slices.Equal(nics, []string{"%i"}) {
			t.Errorf("%s: %v, --boot %v, NICs %v", line, err, boot, nics)
		}
	}
	if found != 1 || strings.Count(string(text), "Exec") != 1 {
		t.Errorf("%d lines that start with %q, and %d commands", found, start, strings.Count(string(text), "Exec"))
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		for _, part := range []string{"[Unit]\n", "[Service]\nType=oneshot\n", "[Install]\nWantedBy=",
			"Before=network-online.target ", "After=ovs-vswitchd.service "} {
			if !strings.Contains(string(text), part) {
				t.Errorf("the unit lacks %q", part)
			}
		}
		return
	}
	self, err := os.Executable() // systemd wants the program to be there
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "ovnkube-bridge@eth0.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/usr/bin/ovnkube", self)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func TestBadBridgeCommandLines(t *testing.T) {
	for want, args := range map[string][]string{
		"nics-to-bridge: which NIC? Give its name, such as eth0":      {"nics-to-bridge"},
		"bridges-to-nic: which bridge? Give its name, such as breth0": {"bridges-to-nic", "--dry-run"},
		"no flag --nosuch": {"nics-to-bridge", "eth0", "--nosuch"},
		"flag needs an argument: -confirm-target": {"nics-to-bridge", "eth0",
			"--confirm-target"},
		`invalid value "x" for flag -confirm-timeout: `: {"nics-to-bridge", "eth0",
			"--confirm-timeout=x"},
		`--datapath-type "x": want system (kernel module) or netdev (userspace)`: {"nics-to-bridge", "eth0",
			"--datapath-type", "x", "--no-confirm"},
		`--confirm-target "x": want HOST:PORT or an IP address`: {"nics-to-bridge", "--confirm-target", "x", "eth0"},
		"--no-confirm and --confirm-target: give one of them": {"nics-to-bridge", "--confirm-target", "192.0.2.1",
			"eth0", "--no-confirm"},
		"--confirm-timeout 0s: want a duration such as 30s": {"nics-to-bridge", "eth0", "--confirm-timeout",
			"0s"},
		"connecting to the Open vSwitch database at unix:/nonexistent: ": {"nics-to-bridge", "eth0", "--no-confirm",
			"--ovs-address", "unix:/nonexistent"},
	} {
		if got := ovnkube(t.Context(), nil, args...); got.exit != 1 || !strings.HasPrefix(got.stderr, "ovnkube: "+want) ||
			got.stdout != "" {
			t.Errorf("%v: %s\nwant %s", args, got, want)
		}
	}
}

// The command, by its classic name, confirms a move with the API server that Open vSwitch knows. Its watchdog undoes a
// move when the command is killed.
func TestNICsToBridge(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	api := bridgeBed(t)
	run := func(args ...string) string {
		t.Helper()
		out, err := ovnUtil(args...).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := run("nics-to-bridge", "eth0", "--dry-run"); testkit.Run(t, "ovs-vsctl", "list-br") != "" ||
		!strings.HasPrefix(out, "+ bridge breth0 fail_mode=standalone datapath_type=netdev ") {
		t.Errorf("--dry-run:\n%s", out)
	}
	moved := "eth0: moved to bridge breth0: the API server http://" + api + " has answered\n"
	if out := run("nics-to-bridge", "eth0"); !strings.Contains(out, moved) {
		t.Errorf("moving:\n%s", out)
	}
	if out := run("nics-to-bridge", "eth0"); out != "eth0: nothing to do: bridge breth0 is set up already\n" {
		t.Errorf("again:\n%s", out)
	}
	if got := testkit.Run(t, "ip", "route", "show", "default"); got != "default via 192.0.2.1 dev breth0 \n" {
		t.Errorf("default route %q", got)
	}
	if out := run("bridges-to-nic", "breth0"); !strings.HasSuffix(out, "breth0: eth0 has its configuration again\n") {
		t.Errorf("the way back:\n%s", out)
	}
	killWhileAsking(t)
	testkit.Eventually(t, "the watchdog's work", func() string {
		text, err := os.ReadFile("/run/nics/eth0.watchdog.log")
		if err != nil || !strings.Contains(string(text), "it has its configuration again") {
			return "it says: " + string(text)
		}
		return ""
	})
	got := testkit.Run(t, "ip", "route", "show", "default") + testkit.Run(t, "ovs-vsctl", "list-br")
	if got != "default via 192.0.2.1 dev eth0 \n" {
		t.Errorf("default route and bridges %q", got)
	}
}

// utilPath is a link to ovnkube by its classic name.
const utilPath = "/run/ovn-k8s-util"

func ovnUtil(args ...string) *exec.Cmd {
	cmd := exec.Command(utilPath, append(args, "--state-dir=/run/nics")...)
	cmd.Env = append(os.Environ(), asOvnkube+"=1", "KUBECONFIG=")
	return cmd
}

// bridgeBed makes a NIC eth0 with a default route, Open vSwitch, an API server that Open vSwitch knows, and utilPath.
// It returns the address of the API server.
func bridgeBed(t *testing.T) (api string) {
	t.Helper()
	testkit.Run(t, "sh", "-ec", `ip netns add outside
ip link add eth0 type veth peer name veth0 netns outside; ethtool -K eth0 tx off >/dev/null
ip netns exec outside ethtool -K veth0 tx off >/dev/null
ip addr add 192.0.2.7/24 dev eth0; ip link set eth0 up; ip route add default via 192.0.2.1
ip -n outside addr add 192.0.2.1/24 dev veth0; ip -n outside link set veth0 up`)
	testkit.StartVSwitch(t)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	testkit.Run(t, "ovs-vsctl", "--no-wait", "set", "Open_vSwitch", ".", "external_ids:ovn-bridge-datapath-type=netdev",
		"external_ids:k8s-api-server="+l.Addr().String())

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, utilPath); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// killWhileAsking starts a move and kills the command while it waits for a target that does not answer.
func killWhileAsking(t *testing.T) {
	t.Helper()
	cmd := ovnUtil("nics-to-bridge", "eth0", "--confirm-target", "192.0.2.99", "--confirm-timeout", "10m")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "eth0: asking 192.0.2.99 for up to 10m0s" {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
}
