package nicmove_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// wires makes eth1 and then eth0, with their other ends in the network namespace "outside". eth1, which does not move,
// is up first: the kernel lists equal routes (fe80::/64) in the order in which they were made.
const wires = `
ip netns add outside
ip -n outside link set lo up
ip -n outside addr add 192.0.2.1/32 dev lo; ip -n outside addr add 2001:db8::1/128 dev lo
ip link add eth1 address 0a:58:00:00:00:02 type veth peer name veth1 netns outside
ethtool -K eth1 tx off >/dev/null; ip netns exec outside ethtool -K veth1 tx off >/dev/null
ip link set eth1 up; ip -n outside link set veth1 up
ip -n outside addr add 10.5.0.9/24 dev veth1; ip -n outside addr add fd05::9/64 dev veth1 nodad
ip addr add 10.5.0.1/24 dev eth1; ip addr add fd05::1/64 dev eth1 nodad
` + wire0

const wire0 = `
ip link add eth0 address 0a:58:00:00:00:01 type veth peer name veth0 address 0a:58:00:00:00:11 netns outside
ethtool -K eth0 tx off >/dev/null; ip netns exec outside ethtool -K veth0 tx off >/dev/null
ip -n outside addr add 10.1.0.1/24 dev veth0; ip -n outside addr add fd01::1/64 dev veth0 nodad
ip link set eth0 up; ip -n outside link set veth0 up
`

// distribution configures eth0 with an item of every kind that a move must take along.
const distribution = `
sysctl -qw net.ipv6.conf.eth0.accept_ra=0 net.ipv4.conf.eth0.rp_filter=2 net.ipv4.conf.eth0.arp_ignore=1
ip link set eth0 mtu 1400; ip -n outside link set veth0 mtu 1400; ethtool -K eth0 gro on
ip addr add 10.1.0.2/24 brd + dev eth0
ip addr add 10.1.0.3/24 brd + dev eth0 label eth0:1
ip addr add 10.2.0.2/24 dev eth0 noprefixroute valid_lft 3600 preferred_lft 1800
ip addr add 10.3.0.1 peer 10.3.0.2/32 dev eth0 metric 77
ip addr add 10.4.0.1/24 dev eth0 scope link
ip addr add fd01::2/64 dev eth0 nodad
ip addr add fd02::2/64 dev eth0 nodad valid_lft 7200 preferred_lft 0
ip addr add fd03::2/64 dev eth0 nodad noprefixroute metric 300
ip addr add fd04::2/64 dev eth0 nodad; ip route del fd04::/64 dev eth0
ip route add default via 10.1.0.1 dev eth0 src 10.1.0.3 metric 50 mtu lock 1300 advmss 1260
ip route add 10.8.0.0/16 dev eth0 proto kernel scope link src 10.2.0.2 metric 100
ip route add 10.9.0.0/16 via 192.0.2.9 dev eth0 onlink
ip route add 10.11.0.0/16 via 10.1.0.9 dev eth0 table 1000 proto 42
ip route add 10.12.0.0/16 nexthop via 10.1.0.9 dev eth0 weight 3 nexthop via 10.5.0.9 dev eth1 weight 5
ip route add 10.13.0.0/16 via inet6 fd01::9 dev eth0
ip -6 route add default via fd01::1 dev eth0 src fd01::2 metric 99 pref high
ip -6 route add fd09::/64 via fd01::9 dev eth0 table 100 expires 900
ip -6 route add fd0b::/64 nexthop via fd01::9 dev eth0 weight 2 nexthop via fd05::9 dev eth1 weight 4
ip rule add from 10.1.0.0/16 iif eth0 lookup 1000 pref 500
ip -6 rule add from fd01::/64 oif eth0 fwmark 0x10/0xf0 lookup 100 pref 502
ip neigh add 10.1.0.77 lladdr 02:00:00:00:00:77 dev eth0 nud permanent
ip neigh add fd01::77 lladdr 02:00:00:00:00:78 dev eth0 nud permanent
ip neigh add proxy 10.1.0.88 dev eth0
`

const rich = wires + distribution

// setUp makes the links with a script, and starts Open vSwitch.
func setUp(t *testing.T, script string) *testkit.VSwitch {
	t.Helper()
	testkit.Run(t, "sh", "-ec", script)
	vs := testkit.StartVSwitch(t)
	awaitChecked(t)
	return vs
}

// awaitChecked waits until the kernel has checked all addresses for duplicates.
func awaitChecked(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "addresses checked", func() string {
		return testkit.Run(t, "ip", "-6", "addr", "show", "tentative")
	})
}

// helper starts the test binary as another program, in a namespace if one is given, and waits for its first line.
func helper(t *testing.T, netns, as string, args ...string) {
	t.Helper()
	line := []string{self(t)}
	if netns != "" {
		line = []string{"ip", "netns", "exec", netns, self(t)}
	}
	line = append(line, args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), asEnv+"="+as)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if got, err := bufio.NewReader(out).ReadString('\n'); err != nil || got != "listening\n" {
		t.Fatalf("%s says %q, %v", as, got, err)
	}
}

// self returns the path of the test binary.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a mover to its end, and returns its output and its error.
func run(t *testing.T, c call) (string, error) {
	t.Helper()
	cmd := moverCommand(t, c)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s", strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

func mustRun(t *testing.T, c call) string {
	t.Helper()
	out, err := run(t, c)
	if err != nil {
		t.Fatalf("%+v: %v\n%s", c, err, out)
	}
	return out
}

func moverCommand(t *testing.T, c call) *exec.Cmd {
	t.Helper()
	argument, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self(t), string(argument))
	cmd.Env = append(os.Environ(), asEnv+"=mover")
	return cmd
}

// runTo runs a mover and sends it a signal before the given step. It returns false if there are fewer steps, so that
// the move is complete.
func runTo(t *testing.T, c call, step int, signal syscall.Signal) (*exec.Cmd, bool) {
	t.Helper()
	c.StopAt = step
	cmd := moverCommand(t, c)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "stopped" {
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return cmd, true
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	return nil, false
}

// runUntil runs a mover and sends it a signal when it prints a line.
func runUntil(t *testing.T, c call, line string, signal syscall.Signal) (string, error) {
	t.Helper()
	cmd := moverCommand(t, c)
	var stdout, stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&stdout, lines.Text())
		if lines.Text() == line {
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		return stdout.String(), fmt.Errorf("%s", strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// seconds matches the lifetimes in a dump.
func seconds() *regexp.Regexp { return regexp.MustCompile(`(_lft|expires) [0-9]+sec`) }

// dump is the output of ip(8) and other tools about an interface and the host's routes, rules and neighbours, without
// lifetimes and without neighbours that the kernel learned.
func dump(t *testing.T, link string) string {
	t.Helper()
	var b strings.Builder
	for _, c := range []string{
		"ip -d link show " + link, "ip -d addr show " + link, "ip -d -4 route show table all",
		"ip -d -6 route show table all", "ip -4 rule", "ip -6 rule",
		"ip neigh show dev " + link + " nud permanent", "ip neigh show proxy dev " + link, "ethtool -k " + link,
		"cd /proc/sys/net; grep -r . ipv4/conf/" + link + " ipv6/conf/" + link + " 2>/dev/null | sort || true",
	} {
		b.WriteString("$ " + c + "\n" + testkit.Run(t, "sh", "-c", c))
	}
	return seconds().ReplaceAllString(b.String(), "$1 N")
}

// belongings is dump without the properties in which a bridge's interface differs: kind, number and queue sizes.
func belongings(t *testing.T, link string) string {
	t.Helper()
	var out []string
	for line := range strings.Lines(dump(t, link)) {
		if strings.HasPrefix(line, "$ ip -d link") || strings.HasPrefix(line, "$ ethtool") {
			out = append(out, line)
			continue
		}
		out = append(out, strings.ReplaceAll(line, link, "LINK"))
	}
	text := strings.Join(out, "")
	addr := text[strings.Index(text, "$ ip -d addr"):]
	addr = regexp.MustCompile(`(?m)^[0-9]+: .*\n`).ReplaceAllString(addr, "")        // number, flags, queue
	addr = regexp.MustCompile(`(?m)^    (veth|tun) .*\n`).ReplaceAllString(addr, "") // kind
	addr = regexp.MustCompile(` (link-netns.*|promiscuity.*|link-netnsid.*)\n`).ReplaceAllString(addr, "\n")
	return regexp.MustCompile(`(?s)\$ ethtool.*?\$ `).ReplaceAllString(addr, "$$ ")
}

// same compares two texts.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"want": want, "got": got} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := exec.Command("diff", "-U1", filepath.Join(dir, "want"), filepath.Join(dir, "got")).Output()
	t.Errorf("%s differs:\n%s", what, out)
}

// clean waits for the watchdog, and checks that the move left nothing behind but the watchdog's log.
func clean(t *testing.T) {
	t.Helper()
	unlock, err := nicmove.Store{Dir: stateDir}.Lock("eth0", true)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	testkit.Eventually(t, "the end of all processes of a move", func() string { return strings.Join(processes(t), ", ") })
	if files, _ := filepath.Glob(stateDir + "/*.json"); len(files) > 0 {
		t.Errorf("left: %v", files)
	}
	if got := testkit.Run(t, "ovs-vsctl", "list-br"); got != "" {
		t.Errorf("bridges left: %s", got)
	}
	if got := testkit.Run(t, "sh", "-c", "ls /sys/class/net | tr '\\n' ' '"); got != "eth0 eth1 lo " {
		t.Errorf("interfaces: %s", got)
	}
}

// processes lists the other processes of the test binary, except the servers.
func processes(t *testing.T) (out []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		environ, err := os.ReadFile(d + "/environ") // empty if the process has exited
		if err != nil {
			continue
		}
		if strings.Contains(string(environ), asEnv+"=mover") || strings.Contains(string(environ), asEnv+"=watchdog") {
			out = append(out, filepath.Base(d))
		}
	}
	return out
}

// reachable pings the node from outside, and the outside from the node, at every address, and checks for duplicates.
func reachable(t *testing.T) {
	t.Helper()
	for _, from := range []string{"ip netns exec outside ping 10.1.0.2", "ip netns exec outside ping fd01::2",
		"ping 192.0.2.1", "ping 2001:db8::1"} {
		pinged(t, from)
	}
}

// pinged waits until three pings are each answered once. On a busy machine, pings may be lost while Open vSwitch learns
// MAC addresses.
func pinged(t *testing.T, command string) {
	t.Helper()
	testkit.Eventually(t, command, func() string {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command+" -c3 -i0.1 -W2").CombinedOutput()
		if strings.Contains(string(out), "DUP!") {
			t.Errorf("$ %s\n%s", command, out)
		}
		if err != nil || !strings.Contains(string(out), " 3 received,") {
			return fmt.Sprintf("%v\n%s", err, out)
		}
		return ""
	})
}
