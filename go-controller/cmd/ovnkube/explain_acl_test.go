package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// loggedBy is a line as ovn-controller writes it.
func loggedBy(acl, verdict, packet string) string {
	return fmt.Sprintf("2026-11-23T05:28:18Z|00037|acl_log(ovn_pinctrl0)|INFO|name=%q, verdict=%s, severity=alert, "+
		"direction=to-lport: %s\n", acl, verdict, packet)
}

// Packets of testdata/logging.in.yaml, as ovn-controller prints them.
const (
	loggedTCP = "tcp,vlan_tci=0x0000,dl_src=0a:58:0a:80:00:03,dl_dst=0a:58:0a:80:00:04,nw_src=10.128.0.3," +
		"nw_dst=10.128.0.4,nw_tos=0,nw_ecn=0,nw_ttl=63,nw_frag=no,tp_src=40000,tp_dst=80,tcp_flags=syn"
	loggedICMP = "icmp,vlan_tci=0x0000,nw_src=192.0.2.7,nw_dst=10.128.0.4,nw_ttl=63,nw_frag=no,icmp_type=8,icmp_code=0"
	loggedTCP6 = "tcp6,vlan_tci=0x0000,ipv6_src=fd01::7,ipv6_dst=fd01::8,ipv6_label=0x8623c,tp_src=1,tp_dst=2"
)

// A line of the log becomes the object, the field, and whose the addresses are.
func TestExplainACL(t *testing.T) {
	const file = "testdata/logging.in.yaml"
	const exit = 1 // of manifests, one of which has an annotation that is not understood
	for _, c := range []struct {
		line string
		exit int
		want []string
	}{
		{loggedBy("NP:shop/web:ingress:0", "allow", loggedTCP), exit, []string{
			"2026-11-23T05:28:18Z allow tcp pod/shop/client (10.128.0.3) -> pod/shop/web (10.128.0.4), ports 40000 -> 80\n" +
				"  np/shop/web spec.ingress[0]\n",
			"(ingress-0-v4-tcp-new)\n"}},
		{loggedBy("NP:shop/web:ingress:deny", "drop", loggedICMP), exit, []string{
			"drop icmp outside (192.0.2.7) -> pod/shop/web (10.128.0.4)\n  np/shop/web isolates the pod for Ingress, and no " +
				"rule of any policy allows this\n", "(deny-in)\n"}},
		{loggedBy("CNP:guard:ingress:1", "pass", loggedTCP6), exit, []string{
			"pass tcp6 outside (fd01::7) -> outside (fd01::8), ports 1 -> 2\n  cnp/guard spec.ingress[1]\n",
			"(ingress-1-v4-itself-new)\n"}},
		{loggedBy("NP:shop/web:ingress:7", "allow", loggedTCP), exit, []string{
			"  np/shop/web spec.ingress[7]; the policy has no such rule any more\n"}},
		{loggedBy("NP:shop/gone:egress:deny", "drop", loggedTCP), exit, []string{
			"np/shop/gone isolates the pod for Egress, and no rule of any policy allows this; " +
				"the policy does not exist any more\n"}},
		{loggedBy("CNP:gone:egress:0", "drop", loggedTCP), exit, []string{
			"spec.egress[0]; the policy does not exist any more\n"}},
		{loggedBy("<unnamed>", "drop", loggedTCP), 1, []string{`the ACL "<unnamed>" is of no policy: want a name such as`}},
		{loggedBy("NP:shop/web:ingress:0", "drop", "tcp,nw_src=10.128.0.3"), 1, []string{"nw_dst or ipv6_dst"}},
		{loggedBy("NP:shop/web:ingress:0\x1b[2J", "drop", loggedTCP), 1, []string{`is of no policy`}},
		{loggedBy("NP:shop/web:ingress:0", "al\x1blow", loggedTCP), 1, []string{`want a line of ovn-controller's log`}},
		{loggedBy("NP:shop/web:ingress:0", "allow", "t\x1bcp,nw_src=10.128.0.3"), 1, []string{`want a line of ovn-con`}},
		{"INFO|connected", 1, []string{`reading "INFO|connected": want a line of ovn-controller's log`}},
	} {
		got := ovnkube(t.Context(), nil, "explain", "--acl", c.line, "-f", file)
		for _, want := range c.want {
			if got.exit != c.exit || !strings.Contains(got.stdout+got.stderr, want) {
				t.Errorf("%s: want exit code %d and %q:\n%s", c.line, c.exit, want, got)
			}
		}
	}
	_, untimed, _ := strings.Cut(loggedBy("NP:shop/web:ingress:0", "allow", loggedTCP), "|")
	for time, line := range map[string]string{
		"": untimed, "2026-11-23T05:28:18.042Z ": "2026-11-23T05:28:18.042Z|" + untimed,
	} {
		if got := ovnkube(t.Context(), nil, "explain", "--acl", line, "-f", file); !strings.HasPrefix(got.stdout,
			time+"allow tcp pod/shop/client (") {
			t.Errorf("want time %q:\n%s", time, got)
		}
	}
	log := "INFO|connected\n" + loggedBy("NP:shop/web:ingress:0", "allow", loggedTCP) + "INFO|other\n" +
		loggedBy("<unnamed>", "drop", loggedTCP) + strings.Repeat("x", 1<<20) + "\n" +
		loggedBy("NP:shop/web:ingress:0", "drop", "tcp,nw_src=damaged") +
		strings.TrimSpace(loggedBy("CNP:guard:ingress:0", "drop", loggedTCP))
	got := ovnkube(t.Context(), strings.NewReader(log), "explain", "--acl", "-", "-f", file, "-o", "json")
	if got.exit != exit || !strings.Contains(got.stdout, `"field": "spec.ingress[0]"`) ||
		strings.Count(got.stdout, `"verdict"`) != 2 ||
		!strings.Contains(got.stderr, "2 of 4 lines about ACLs are left out: of no policy, or damaged\n") ||
		!strings.Contains(got.stdout, `"object": "cnp/guard"`) {
		t.Errorf("the log on standard input:\n%s", got)
	}
	got = ovnkube(t.Context(), strings.NewReader(log), "explain", "--acl", "-", "-f", file, "-o", "yaml")
	if n := strings.Count(got.stdout, "\n---\n"); n != 1 {
		t.Errorf("%d separators of two YAML documents, want 1:\n%s", n, got)
	}
	got = ovnkube(t.Context(), strings.NewReader("INFO|connected\n"), "explain", "--acl", "-", "-f", file)
	if got.exit != 1 || !strings.Contains(got.stderr, "standard input has no line about an ACL") {
		t.Errorf("a log without such lines:\n%s", got)
	}
}

// Beside a database, the explanation says how the row is there. A policy whose name is cut in the log is found.
func TestExplainACLLive(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	long := strings.Repeat("long-name-", 20) + "web"
	served := listsOf(t, "testdata/logging.in.yaml")
	const policies = "/apis/networking.k8s.io/v1/networkpolicies"
	served[policies] = strings.Replace(served[policies], `"name":"web"`, `"name":"`+long+`"`, 1)
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	const name = "NP:shop/long-name-long-name-long-name-long-n~b9001272:ingress:0"
	got := ovnkube(t.Context(), nil, "explain", "--acl", loggedBy(name, "allow", loggedTCP), "--log-level=error",
		"--nb-address", remote, "--k8s-apiserver", served.serve(t))
	for _, want := range []string{"\n  np/shop/" + long + " spec.ingress[0]\n", "(ingress-0-v4-tcp-new): missing\n"} {
		if got.exit != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("want %q:\n%s", want, got)
		}
	}
}
