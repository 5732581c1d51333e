package attacks

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/control"
)

// databasesFromPods has a pod of each node try both databases, by every address of their machine. By the address that
// nodes are told nothing can be connected to but the API server. By others the databases answer nothing.
func (b bed) databasesFromPods(t *testing.T) {
	t.Helper()
	remote, err := b.Nodes[0].Run(t.Context(), "ovs-vsctl", "get", "Open_vSwitch", ".", "external_ids:ovn-remote")
	must(t, err)
	told := 0
	var wg sync.WaitGroup
	for _, to := range b.servers() {
		known := strings.Contains(remote, netip.AddrPortFrom(to.Addr(), control.SBPort).String())
		if known {
			told++
		}
		for _, pod := range []string{"on-n1", "on-n2"} {
			wg.Go(func() { b.databaseFromPod(t, pod, to, known) })
		}
	}
	wg.Wait()
	if told == 0 {
		t.Errorf("no address of %v is in ovn-remote: %s", b.servers(), remote)
	}
	if names, err := b.NBCtl(t.Context(), "ls-list"); err != nil || strings.Contains(names, "evil") {
		t.Errorf("the Northbound database has the switches %s (%v)", names, err)
	}
}

// databaseFromPod has a pod try a server, whose address nodes are told or not.
func (b bed) databaseFromPod(t *testing.T, pod string, to netip.AddrPort, known bool) {
	t.Helper()
	out := machines.Kubectl(t, b.Cluster, "", "-n", tenant, "exec", pod, "--", machines.EchoInPod, "databases",
		to.String())
	api := to.Port() == control.APIPort
	drops := known && !api
	if dropped := strings.HasPrefix(out, "error: dial ") && strings.HasSuffix(out, "i/o timeout"); dropped != drops {
		t.Errorf("pod %s tries %s: %q; want an i/o timeout: %v", pod, to, out, drops)
	}
	for line := range strings.SplitSeq(out, "\n") {
		if !api && !strings.HasPrefix(line, "error: ") {
			t.Errorf("pod %s tries %s: the database answers %q, want an error", pod, to, line)
		}
	}
}

// databasesFromNodes has n2 try what its own certificate must not allow: to write what is n1's or the network's in the
// Southbound database, and to reach the Northbound database at all.
func (b bed) databasesFromNodes(t *testing.T) {
	t.Helper()
	n2 := b.Nodes[1]
	own, master := b.keys(t)
	server := machines.Databases(b.Cluster)[0].Addr()
	ctl := func(program string, port uint16, k control.Keys, ca string, args ...string) error {
		to := netip.AddrPortFrom(server, port)
		_, err := n2.Run(t.Context(), append([]string{program, fmt.Sprintf("--db=ssl:%s", to), "--timeout=10", "-p", k.Key,
			"-c", k.Cert, "-C", ca}, args...)...)
		return err
	}
	sb := func(args ...string) error { return ctl("ovn-sbctl", control.SBPort, own, own.CA, args...) }
	encap, err := b.SBCtl(t.Context(), "--bare", "--columns=_uuid", "find", "Encap", "chassis_name=n1")
	must(t, err)
	for _, args := range [][]string{
		{"set", "Chassis", "n1", "external_ids:evil=1"},
		{"set", "Chassis", "n2", "hostname=n1"},
		{"chassis-del", "n1"},
		{"chassis-add", "n9", "geneve", "192.0.2.9"},
		{"set", "Encap", strings.TrimSpace(encap), "ip=192.0.2.9"},
		{"set", "Chassis_Private", "n1", "nb_cfg=99"},
		{"set", "Port_Binding", "k8s-n1", "mac=unknown"},
		{"set", "SB_Global", ".", "nb_cfg=99"},
		{"create", "Logical_Flow", "pipeline=ingress", "table_id=0", "priority=1", "match=1", "actions=drop"},
		{"create", "RBAC_Role", "name=evil"},
		{"clear", "RBAC_Role", "ovn-controller", "permissions"},
		{"set", "Connection", ".", "role=other"},
		{"set-connection", "pssl:6642"},
		{"del-connection"},
	} {
		if err := sb(args...); err == nil || !strings.Contains(err.Error(), "permission error") {
			t.Errorf("n2 does ovn-sbctl %s: %v, want a permission error", strings.Join(args, " "), err)
		}
	}
	// The rules by which the others are refused let n2 do this.
	if err := sb("set", "Chassis", "n2", "external_ids:probe=1", "--", "remove", "Chassis", "n2", "external_ids",
		"probe"); err != nil {
		t.Errorf("n2 changes its own Chassis: %v", err)
	}
	if err := ctl("ovn-nbctl", control.NBPort, master, master.CA, "ls-list"); err != nil {
		t.Errorf("the master's certificate at the Northbound database: %v", err)
	}
	if err := ctl("ovn-nbctl", control.NBPort, own, master.CA, "ls-list"); err == nil {
		t.Error("n2's certificate opens the Northbound database")
	}
	for program, port := range map[string]uint16{"ovn-nbctl": control.NBPort, "ovn-sbctl": control.SBPort} {
		to := netip.AddrPortFrom(server, port)
		for _, how := range []string{"tcp", "ssl"} {
			if _, err := n2.Run(t.Context(), program, fmt.Sprintf("--db=%s:%s", how, to), "--timeout=5", "show"); err == nil {
				t.Errorf("%s at %s:%s gets an answer without a certificate", program, how, to)
			}
		}
	}
	if err := ctl("ovn-sbctl", control.SBPort, master, own.CA, "show"); err == nil {
		t.Error("the master's certificate opens the Southbound database")
	}
	b.chassisWork(t)
}

// chassisWork has every chassis do what the role must let it do: bind its ports, and report that its flows are up to
// date.
func (b bed) chassisWork(t *testing.T) {
	t.Helper()
	if _, err := b.NBCtl(t.Context(), "--timeout=30", "--wait=hv", "sync"); err != nil {
		t.Errorf("the chassis report what they have done: %v", err)
	}
	machines.Eventually(t, "every port is bound", func(ctx context.Context) string {
		out, err := b.SBCtl(ctx, "--bare", "--columns=logical_port", "find", "Port_Binding", "type=\"\"", "up=false")
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(out)
	})
	for _, n := range b.Nodes {
		log := b.controllerLog(t, n)
		if refused := strings.Count(log, "permission error"); refused > 0 || !strings.Contains(log, "connected") {
			t.Errorf("%s: ovn-controller was refused %d times:\n%s", n.Spec.Name, refused, log)
		}
	}
}
