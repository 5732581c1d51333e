package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestGatewayHelperFlagsWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"ovnkube: --physical-interface: the NIC": {},
		"--physical-bridge: the bridge":          {"--physical-interface", "eth0"},
		"--physical-interface: the NIC":          {"--physical-bridge", "breth0"},
		"--gateway-vlan-id 5000: want 1 to 4094": {"--physical-bridge", "breth0", "--physical-interface", "eth0",
			"--gateway-vlan-id", "5000"},
		"--detach: goes with neither": {"--physical-bridge", "breth0", "--undo", "--detach"},
		`-vloud: level "loud"`: {"--physical-bridge", "breth0", "--physical-interface", "eth0",
			"--verbose", "loud"},
		`unexpected argument "eth0"`: {"--physical-bridge", "breth0", "eth0"},
		"connecting to the Open vSwitch database ": {"--physical-bridge", "breth0", "--physical-interface", "eth0",
			"--ovs-address", "unix:/nowhere"},
	} {
		if out := ovnkube(t.Context(), nil, append([]string{"gateway-helper"}, args...)...); out.exit == 0 ||
			!strings.Contains(out.stderr, want) {
			t.Errorf("%v: exit %d, %q; want %q", args, out.exit, out.stderr, want)
		}
	}
}

// The classic command, detached, restores lost flows, also after a restart of ovs-vswitchd. The flows stay when it
// ends.
func TestGatewayHelper(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	vs := testkit.StartVSwitch(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, "/run/ovn-k8s-gateway-helper"); err != nil {
		t.Fatal(err)
	}
	testkit.Run(t, "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0peer")
	if out, err := helper("--detach", "--pidfile="+helperPidfile); err == nil ||
		!strings.Contains(out, "interface eth0 is not in a bridge: run `ovnkube nics-to-bridge eth0`") {
		t.Errorf("without a bridge: %v\n%s", err, out)
	}
	testkit.Run(t, "ovs-vsctl", "add-br", "breth0", "--", "set", "bridge", "breth0", "datapath_type=netdev", "--",
		"add-port", "breth0", "eth0")
	if out, err := helper("--dry-run"); err != nil || strings.Count(out, "+ flow of breth0 ") != 2 || helperFlows(t) != 0 {
		t.Errorf("--dry-run without a gateway: %v, %d flows\n%s", err, helperFlows(t), out)
	}
	out, err := helper("--detach", "--pidfile="+helperPidfile, "--log-file=/run/helper.log", "-vfile:info",
		"-vconsole:emer")
	if err != nil || out != "" || helperFlows(t) != 2 {
		t.Fatalf("detaching: %v, %d flows\n%s", err, helperFlows(t), out)
	}
	pid := helperPid(t)
	testkit.Run(t, "ovs-vsctl", "add-br", "br-int", "--", "set", "bridge", "br-int", "datapath_type=netdev",
		"--", "add-port", "br-int", "p2", "--", "set", "interface", "p2", "type=patch",
		"options:peer=patch-breth0_n1-to-br-int",
		"--", "add-port", "breth0", "patch-breth0_n1-to-br-int", "--", "set", "interface", "patch-breth0_n1-to-br-int",
		"type=patch", "options:peer=p2")
	awaitFlows(t, "with the gateway's patch port", 21) // no tunnels: external_ids has no encap type
	testkit.Run(t, "ovs-ofctl", "del-flows", "breth0", "ip")
	awaitFlows(t, "after a flow was removed", 21)
	vs.StopDaemon(t)
	vs.StartDaemon(t)
	awaitFlows(t, "after ovs-vswitchd started again", 21)
	if out, err := helper("--dry-run"); err != nil || out != "" {
		t.Errorf("--dry-run with all there: %v\n%s", err, out)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the helper ends", func() string {
		if _, err := os.Stat(helperPidfile); err == nil {
			return "its pidfile is there"
		}
		return ""
	})
	awaitFlows(t, "without the helper", 21)
	for _, want := range []int{21, 0} {
		if out, err := helper("--undo"); err != nil || strings.Count(out, "- flow of breth0 ") != want ||
			helperFlows(t) != 0 {
			t.Errorf("--undo: %v, %d flows\n%s, want %d removed", err, helperFlows(t), out, want)
		}
	}
}

const helperPidfile = "/run/ovn-kubernetes/ovn-k8s-gateway-helper.pid"

func helper(args ...string) (string, error) {
	cmd := exec.Command("/run/ovn-k8s-gateway-helper",
		append([]string{"--physical-bridge=breth0", "--physical-interface=eth0"}, args...)...)
	cmd.Env = append(os.Environ(), asOvnkube+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// helperPid reads the process id of the helper, and kills the helper when the test ends.
func helperPid(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile(helperPidfile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // gone already when the test passes
	return pid
}

// helperFlows counts the helper's flows on breth0.
func helperFlows(t *testing.T) int {
	t.Helper()
	out, err := exec.Command(testkit.Tool(t, "ovs-ofctl"), "dump-flows", "breth0").Output()
	if err != nil {
		return -1 // ovs-vswitchd has just started
	}
	return strings.Count(string(out), "cookie=0x6e626777")
}

func awaitFlows(t *testing.T, what string, want int) {
	t.Helper()
	testkit.Eventually(t, what, func() string {
		if n := helperFlows(t); n != want {
			return fmt.Sprintf("%d flows, want %d", n, want)
		}
		return ""
	})
}
