package preflight

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/doctor"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// What is wrong with a real kernel, real interfaces, rules, ports and files is found, and is found no more when it is
// mended.
func TestRead(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	n := config.DefaultNode()
	n.CNIConfDir = t.TempDir()
	c := Config{Node: n, Worker: true, Central: true}
	// problems leaves out what the kernel and the packages of this machine decide.
	problems := func() map[string]string {
		out := map[string]string{}
		for _, f := range Examine(c, Read(t.Context(), c), "m").Findings {
			controlled := slices.Contains([]string{"ports", "mtu", "other-network", "kube-proxy", "firewall",
				"iptables-legacy", "networkmanager"}, f.Check)
			if controlled && f.Status != doctor.OK {
				out[f.Check] = f.Message
			}
		}
		return out
	}
	ip := func(args string) { testkit.Run(t, "ip", strings.Fields(args)...) }
	ip("link add under type veth peer name far")
	ip("link set far up")
	ip("address add 192.0.2.7/24 dev under")
	ip("link set under up")
	ip("route add default via 192.0.2.254")
	if got := problems(); len(got) != 0 {
		t.Fatalf("a machine without faults: %v", got)
	}

	ip("link set under mtu 600")
	ip("link add flannel.1 type veth peer name kube-ipvs0")
	conf := filepath.Join(n.CNIConfDir, "10-flannel.conflist")
	if err := os.WriteFile(conf, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	dropForwarded(t)
	testkit.Run(t, "iptables-legacy", "--table", "nat", "--new-chain", "KUBE-SERVICES")
	runNetworkManager(t, "[main]\nplugins=keyfile\n")
	for _, p := range []Port{{"udp", ":6081"}, {"tcp", ":6642"}, {"tcp", n.Metrics}} {
		occupy(t, p)
	}
	got := problems()
	for check, want := range map[string]string{
		"mtu": "under has an MTU of 600", "kube-proxy": "kube-ipvs0", "firewall": "chain FORWARD of table filter drops",
		"iptables-legacy": "table nat of iptables-legacy has rules of kube-proxy",
		"networkmanager":  "NetworkManager manages br-int, genev_sys_6081, vxlan_sys_4789, k8s-NODE",
		"other-network":   "the runtime takes the first; interface flannel.1 is of flannel",
		"ports":           "udp :6081: address already in use; tcp 127.0.0.1:9410: address already in use; tcp :6642: ",
	} {
		if !strings.Contains(got[check], want) {
			t.Errorf("%s: %q, want %q", check, got[check], want)
		}
	}
	if len(got) != 7 {
		t.Errorf("problems %v, want 7", got)
	}
	testkit.Run(t, "iptables-legacy", "--table", "nat", "--delete-chain", "KUBE-SERVICES")
	if still := problems()["iptables-legacy"]; still != "" {
		t.Errorf("the chain is gone, but still found: %s", still)
	}
}

// runNetworkManager has a program of this name run until the test ends. Asked for its configuration, it prints this.
func runNetworkManager(t *testing.T, configuration string) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\ncase $1 in --print-config) printf '" + configuration + "' ;; *) read -r forever ;; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "NetworkManager"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	cmd := exec.Command("NetworkManager")
	end, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = end.Close()
		_ = cmd.Wait()
	})
}

// dropForwarded makes the chain of iptables-nft as Docker does.
func dropForwarded(t *testing.T) {
	t.Helper()
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	drop := nftables.ChainPolicyDrop
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "filter"})
	c.AddChain(&nftables.Chain{Table: table, Name: "FORWARD", Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &drop})
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
}

// occupy listens on a port until the test ends.
func occupy(t *testing.T, p Port) {
	t.Helper()
	var l net.ListenConfig
	if p.Network == "udp" {
		conn, err := l.ListenPacket(t.Context(), "udp", p.Address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return
	}
	listener, err := l.Listen(t.Context(), "tcp", p.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
}
