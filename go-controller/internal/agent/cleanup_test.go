package agent

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cleanup"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// machineScript prints all that an agent may change on a machine. Open vSwitch's own start script sets the two keys
// that are left out. So are br-int's tables 66 and 67: ovn-controller fills them when it learns a neighbor's address,
// which may happen at any time.
const machineScript = `
for p in ip nft ovs-vsctl sysctl; do command -v $p >/dev/null || exit 1; done
ip -o addr | sed 's/^[0-9]*: //' | sort
for f in -4 -6; do ip $f rule; ip $f route show table all; ip $f neigh show nud permanent; done | sort
nft list ruleset
for b in $(ovs-vsctl list-br); do echo "$b:" $(ovs-vsctl list-ports $b); ovs-ofctl --no-stats dump-flows $b; done |
  grep -v 'table=6[67],'
ovs-vsctl --no-headings --columns=ssl list Open_vSwitch
ovs-vsctl get Open_vSwitch . external_ids | tr -d '{}" ' | tr , '\n' | grep -v '^system-id=\|^hostname='
sysctl -a 2>/dev/null | grep 'forward\|accept_ra \|rp_filter\|arp_ignore' | sort
ls -A /run/net.d /run/plugins /run/ovn-kubernetes /run/state || true
`

func machine(t *testing.T) string {
	t.Helper()
	return testkit.Run(t, "sh", "-c", machineScript+"true")
}

// differing shows the lines that only one of two texts has.
func differing(now, before string) string {
	var out []string
	for _, l := range strings.Split(now, "\n") {
		if !slices.Contains(strings.Split(before, "\n"), l) {
			out = append(out, "+ "+l)
		}
	}
	for _, l := range strings.Split(before, "\n") {
		if !slices.Contains(strings.Split(now, "\n"), l) {
			out = append(out, "- "+l)
		}
	}
	return strings.Join(out, "\n")
}

// cleanupBed is a gateway with a pod on a machine that the chart has changed.
type cleanupBed struct {
	*bed
	before  string // the machine before the first agent
	cleanup cleanup.Node
	out     bytes.Buffer
}

const (
	stateDir  = "/run/state/northbound"
	socketDir = "/run/ovn-kubernetes/cni"
	pem       = stateDir + "/certificates/ovn-sb-current.pem"
)

func newCleanupBed(t *testing.T) *cleanupBed {
	t.Helper()
	b, etc := &cleanupBed{bed: newGatewayBed(t, 0)}, t.TempDir()
	testkit.Run(t, "sh", "-ec", "mkdir /run/net.d /run/plugins /run/state; echo chassis-1 > "+etc+
		"/system-id.conf.before-northbound; echo "+node+" > "+etc+"/system-id.conf")
	b.config.CNIBinDir, b.config.CNISocketDir = "/run/plugins", socketDir
	// Another program's port, whose peer is not there yet.
	testkit.Run(t, "ovs-vsctl", "add-port", "breth0", "theirs", "--", "set", "interface", "theirs", "type=patch",
		"options:peer=int-theirs")
	b.config.SBKeys = config.Keys{PrivKey: pem, Cert: pem, CACert: stateDir + "/certificates/ovn-sb-ca.crt"}
	awaitOutput(t, "", "ip", "-6", "addr", "show", "tentative")
	b.before = machine(t)
	testkit.Run(t, "ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:k8s-api-token=secret")
	b.start(t)
	b.grantSubnets(t, "10.128.2.0/23", "fd01:0:0:1::/64")
	b.awaitFlows(t, 2)
	b.makeGatewayRouter(t)
	b.awaitReady(t)
	// The kernel adds the routes of a link-local address a second later.
	awaitOutput(t, "", "ip", "-6", "addr", "show", "tentative")
	testkit.Run(t, "sh", "-ec", "cd /run/plugins; touch ovn_cni; ln -s ovn_cni ovn-k8s-cni-overlay; mkdir "+stateDir+
		"; cd "+stateDir+"; mkdir certificates")
	b.cleanup = cleanup.Node{
		OVSAddress: b.config.OVSAddress, OVNRunDir: b.config.OVNRunDir, CNIConfDir: b.config.CNIConfDir,
		CNIBinDir: b.config.CNIBinDir, CNISocketDir: b.config.CNISocketDir, StateDir: stateDir,
		DatabaseDir:    stateDir + "/ovn",
		OpenvSwitchDir: etc, Timeout: 10 * time.Second, Out: &b.out, Log: slog.New(slog.DiscardHandler),
	}
	return b
}

// refused tries to clean up, which must fail with these words and change nothing.
func (b *cleanupBed) refused(t *testing.T, want ...string) {
	t.Helper()
	was := machine(t)
	err := b.cleanup.Run(t.Context())
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v, want %q in it", err, w)
		}
	}
	if now := machine(t); now != was || b.out.Len() > 0 {
		t.Errorf("a refused cleanup changed the machine, printing %q:\n%s", &b.out, differing(now, was))
	}
}

// TestCleanup compares a machine before its first agent with the one after `ovnkube cleanup node`.
func TestCleanup(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newCleanupBed(t)
	b.refused(t, "the node agent runs", "ovn-controller runs", "a database runs, and listens on ")
	b.cleanup.DatabaseDir = ""
	b.stop()
	b.refused(t, "ovn-controller runs")
	// As when its pod ends: it leaves everything as it is.
	testkit.Run(t, "ovn-appctl", "-t", "ovn-controller", "exit", "--restart")
	testkit.Eventually(t, "the end of ovn-controller", func() string {
		if _, err := os.Stat(filepath.Join(b.config.OVNRunDir, "ovn-controller.pid")); err == nil {
			return "its pidfile is there"
		}
		return ""
	})
	b.refused(t, "pods on this node would lose their network", ": default_a: ")
	testkit.Run(t, "ip", "link", "del", "va")
	b.dryRun(t)
	b.out.Reset()
	if err := b.cleanup.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the machine as it was before", func() string { return differing(machine(t), b.before) })
	awaitOutput(t, "chassis-1", "ovs-vsctl", "get", "Open_vSwitch", ".", "external_ids:"+names.OVSSystemID)
	awaitOutput(t, "chassis-1", "cat", filepath.Join(b.cleanup.OpenvSwitchDir, "system-id.conf"))
	b.out.Reset()
	if err := b.cleanup.Run(t.Context()); err != nil || b.out.String() != "Nothing to clean up.\n" {
		t.Errorf("a second time: %v, %q", err, &b.out)
	}
}

// dryRun prints every kind of change, and makes none.
func (b *cleanupBed) dryRun(t *testing.T) {
	t.Helper()
	b.cleanup.DryRun = true
	defer func() { b.cleanup.DryRun = false }()
	was := machine(t)
	if err := b.cleanup.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := machine(t); now != was {
		t.Errorf("with --dry-run the machine changed:\n%s", differing(now, was))
	}
	for _, want := range []string{
		"- /run/net.d/10-ovn-kubernetes.conflist\n", " flows of Northbound on bridge breth0\n", "- port patch-breth0_",
		"- bridge br-int\n", "- ssl private_key=" + pem + "\n", "- external_ids:ovn-remote=unix:",
		"- external_ids:k8s-api-token\n", // without the token
		"- route 10.128.0.0/14 via 10.128.2.1", "- nftables' table inet northbound\n",
		"- nftables' table netdev northbound\n",
		"~ sysctl net/ipv4/ip_forward = 0 (was: sysctl net/ipv4/ip_forward = 1)\n", "- /run/plugins/ovn_cni\n",
		"- /run/plugins/ovn-k8s-cni-overlay\n",
		"- " + socketDir + "/ovn-cni-server.sock\n",
		"- " + stateDir + "/certificates\n", "~ external_ids:system-id=chassis-1 (was: ",
	} {
		if !strings.Contains(b.out.String(), want) {
			t.Errorf("--dry-run does not print %q but:\n%s", want, &b.out)
		}
	}
	// `ovnkube nics-to-bridge` marks its bridges, and needs these rules.
	testkit.Run(t, "ovs-vsctl", "br-set-external-id", "breth0", "bridge-uplink", "eth0")
	defer testkit.Run(t, "ovs-vsctl", "br-set-external-id", "breth0", "bridge-uplink")
	b.out.Reset()
	if err := b.cleanup.Run(t.Context()); err != nil || strings.Contains(b.out.String(), "netdev northbound") {
		t.Errorf("rules of a moved NIC are removed, or %v:\n%s", err, &b.out)
	}
}
