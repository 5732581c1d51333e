package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/extbridge"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/kube/selector"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// serveReady answers /readyz as package health does, until the test ends, and
// tells where.
func serveReady(t *testing.T, ready func() error) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// With another cluster's flags nothing of the host is called wrong: what would
// mend it would cut the node's pods off.
func TestOtherFlags(t *testing.T) {
	h := &facts{nodeOK: true, t: Tools{Kernel: emptyKernel{}}}
	h.c.Node.ClusterSubnets = []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.128.0.0/14"), NodeLength: 23}}
	h.node.Annotations = map[string]string{"k8s.ovn.org/node-subnets": `{"default":["10.244.1.0/24"]}`}
	h.planErr = h.plan()
	if f := checkSubnets(t.Context(), h); f.Status != Problem || !strings.Contains(f.Message,
		"10.244.1.0/24 is in none of --cluster-subnets 10.128.0.0/14/23") {
		t.Errorf("subnets: %+v", f)
	}
	if f := checkRoutes(t.Context(), h); f.Status != NotChecked || len(f.Fix) > 0 {
		t.Errorf("routes: %+v", f)
	}
}

// What the API server and the agent say, and clocks.
func TestServers(t *testing.T) {
	now := time.Now()
	answer := func(date time.Time) client.Answer {
		return client.Answer{Server: "https://api", Version: "v1", Date: date, Asked: now, Read: now}
	}
	sick := serveReady(t, func() error { return errors.New("no tunnel address") })
	for name, c := range map[string]struct {
		check        func(context.Context, *facts) Finding
		h            facts
		status       Status
		message, fix string
	}{
		"no API server given": {checkAPIServer, facts{}, NotChecked, "no API server is given", ""},
		"API server away": {checkAPIServer,
			facts{c: Config{Kubernetes: true}, apiErr: errors.New("connection refused")}, Problem, "connection refused",
			"does it run"},
		"no rights": {checkAPIServer, facts{c: Config{Kubernetes: true}, nodeErr: errors.New("forbidden")},
			Problem, "forbidden", "get, list and watch"},
		"no Node": {checkAPIServer, facts{c: Config{Kubernetes: true, Node: config.Node{Name: "n1"}}}, Problem,
			`there is no Node "n1"`, "--node-name"},
		"API server well": {checkAPIServer, facts{c: Config{Kubernetes: true}, answer: answer(now), nodeOK: true}, OK,
			"https://api v1", ""},
		"Node without subnets": {checkSubnets, facts{nodeOK: true, planErr: errNoSubnets}, Problem,
			"has no annotation k8s.ovn.org/node-subnets", "ovnkube master"},
		"subnets of nobody": {checkSubnets, facts{planErr: errNoSubnets}, NotChecked,
			"neither a Node nor the management port", ""},
		"subnets malformed": {checkSubnets, facts{nodeOK: true, planErr: errors.New("host bits")}, Problem, "host bits",
			"kubectl annotate node"},
		"clock ahead": {checkClock, facts{c: Config{Kubernetes: true}, answer: answer(now.Add(-time.Minute))},
			Problem, "59s ahead of the API server's", "timedatectl set-ntp true"},
		"clock behind": {checkClock, facts{c: Config{Kubernetes: true}, answer: answer(now.Add(time.Minute))},
			Problem, "1m0s behind the API server's", "chronyc makestep"},
		"clock right": {checkClock, facts{c: Config{Kubernetes: true}, answer: answer(now)}, OK, "less than 5s",
			""},
		"clock without a date": {checkClock, facts{c: Config{Kubernetes: true}, answer: answer(time.Time{})}, NotChecked,
			"does not tell the time", ""},
		"clock without API": {checkClock, facts{}, NotChecked, "no API server", ""},
		"agent away": {checkAgent,
			facts{c: Config{Timeout: time.Second, Node: config.Node{Metrics: "127.0.0.1:1"}}},
			NotChecked, "no agent answers", ""},
		"agent says": {checkAgent,
			facts{c: Config{Timeout: time.Second, Node: config.Node{Metrics: sick}}}, Problem,
			"no tunnel address", "journalctl"},
		"remote Open vSwitch": {checkVSwitchd, facts{c: Config{Node: config.Node{OVSAddress: "tcp:10.0.0.1:6640"}}},
			NotChecked, "no socket of this host", ""},
		"no kernel module": {checkDatapath,
			facts{c: Config{Node: config.Node{DatapathType: "system"}}, t: Tools{Kernel: moduleless{}}}, Problem,
			"module is not loaded", "modprobe openvswitch"},
		"old Open vSwitch": {checkVSwitchd, vswitchd("system", "ovs-vswitchd (Open vSwitch) 2.17.9"), Problem,
			"2.17.9, older than 3.1.0", "upgrade"},
		"broken Open vSwitch": {checkVSwitchd, vswitchd("netdev", "ovs-vswitchd (Open vSwitch) 3.1.0"), Problem,
			"aborts now and then", "3.1.3, 3.2.3"},
		"new Open vSwitch":      {checkVSwitchd, vswitchd("netdev", "ovs-vswitchd (Open vSwitch) 3.10.0"), OK, "3.10.0", ""},
		"kernel's Open vSwitch": {checkVSwitchd, vswitchd("system", "ovs-vswitchd (Open vSwitch) 3.1.0"), OK, "3.1.0", ""},
		"old OVN": {checkController, vswitchd("system", "ovn-controller 22.03.1\nOpen vSwitch Library 2.17.2"),
			Problem, "22.03.1, older than 23.03.0", "upgrade OVN"},
		"gateway node": {checkMasquerade,
			facts{c: Config{Node: config.Node{Gateway: config.Gateway{Mode: "shared"}}}}, NotChecked, "gateway router", ""},
		"Linux's own ports": {checkLocalPorts, portsOf("32768\t60999", ""), OK, "32768 60999, none of 10240-29999", ""},
		"all ports": {checkLocalPorts, portsOf("1024\t65535", ""), Problem, "may have source port 10240",
			"ip_local_reserved_ports=10240-29999 "},
		"few ports": {checkLocalPorts, portsOf("29999\t65535", "8080,30000-32767"), Problem, "may have source port 29999",
			"ip_local_reserved_ports=8080,30000-32767,10240-29999 "},
		"ports reserved": {checkLocalPorts, portsOf("1024\t65535", "8080,10000-20000,20001,20002-30000"), OK, "none of", ""},
		"a port reserved too few": {checkLocalPorts, portsOf("1024\t65535", "10000-20000,20002-30000"), Problem, "port 20001",
			""},
		"no ports": {checkLocalPorts, portsOf("", ""), NotChecked, "want two numbers", ""},
		"services unknown": {checkServicePorts,
			facts{c: Config{Kubernetes: true}, servedErr: errors.New("may this identity list them?")}, NotChecked,
			"may this identity list them?", ""},
		"services without API": {checkServicePorts, facts{}, NotChecked, "no API server is given", ""},
		"services of no subnet": {checkServicePorts, facts{c: Config{Kubernetes: true}, planErr: errNoSubnets}, NotChecked,
			"subnets are not known", ""},
		"databases open": {checkDatabaseAccess,
			facts{ids: map[string]string{"ovn-remote": "ssl:10.0.0.1:6642,tcp:10.0.0.2:6642"}}, Problem,
			"external_ids:ovn-remote tcp:10.0.0.2:6642: whoever reaches that port may change the network",
			"Who may reach the databases"},
		"Northbound database open": {checkDatabaseAccess,
			facts{c: Config{Northbound: &config.OVSDB{Addresses: []string{"tcp:[fd00::1]:6641"}}}}, Problem,
			"--nb-address tcp:[fd00::1]:6641", ""},
		"certificate of another": {checkChassis,
			facts{ids: map[string]string{"system-id": "n1"}, sbKeys: certificateOf("n2")}, Problem,
			`chassis "n1", which is this node's system-id, is not in`, `common name "n2"`},
		"databases closed": {checkDatabaseAccess, facts{ids: map[string]string{"ovn-remote": "ssl:10.0.0.1:6642"}}, OK,
			"no address is tcp:", ""},
		"no gateway": {checkExternalBridge, facts{}, NotChecked,
			"neither --gateway-mode nor external_ids:northbound-gateway-bridge is set", ""},
		"gateway unlabelled": {checkExternalBridge, labelled(t, true, nil), NotChecked,
			"its labels do not match --gateway-node-label role=exit", ""},
		"label not known": {checkExternalBridge, labelled(t, false, nil), NotChecked,
			"it is not known whether the labels of the Node match --gateway-node-label role=exit", ""},
		"gateway's bridge away": {checkExternalBridge, labelled(t, true, map[string]string{"role": "exit"}), Problem,
			"there is no such bridge", "ovnkube nics-to-bridge eth0"},
		"bridge remembered": {checkExternalBridge,
			facts{ids: map[string]string{"northbound-gateway-bridge": "breth7"}, t: Tools{Find: bridgeless}}, Problem,
			"there is no such bridge", "ovnkube nics-to-bridge breth7"},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.check(t.Context(), &c.h)
			if f.Status != c.status || !strings.Contains(f.Message, c.message) || !strings.Contains(strings.Join(f.Fix, "\n"),
				c.fix) {
				t.Errorf("%s %q, fix %q; want %s, %q, %q", f.Status, f.Message, f.Fix, c.status, c.message, c.fix)
			}
		})
	}
}

// certificateOf is a connection's configuration with a certificate of this common name.
func certificateOf(name string) *tls.Config {
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: name}}
	return &tls.Config{Certificates: []tls.Certificate{{Leaf: leaf}}}
}

// emptyKernel has nothing of what it is asked for.
type emptyKernel struct{ *hostnet.Netlink }

func (emptyKernel) Read([]hostplan.Item) ([]hostplan.Item, error)           { return nil, nil }
func (emptyKernel) Find(netip.Addr) (place hostnet.Place, ok bool, _ error) { return place, false, nil }
func (emptyKernel) RALinks() ([]string, error)                              { return nil, nil }

// portKernel has these values of what says which ports Linux chooses.
type portKernel struct {
	*hostnet.Netlink
	chosen, reserved string
}

func (k portKernel) Read([]hostplan.Item) ([]hostplan.Item, error) {
	return []hostplan.Item{hostplan.Sysctl{Path: localPorts, Value: k.chosen},
		hostplan.Sysctl{Path: reservedPorts, Value: k.reserved}}, nil
}

func portsOf(chosen, reserved string) facts {
	return facts{t: Tools{Kernel: portKernel{chosen: chosen, reserved: reserved}}}
}

// moduleless is a kernel without Open vSwitch.
type moduleless struct{ *hostnet.Netlink }

func (moduleless) HasFamily(string) (bool, error) { return false, nil }

// labelled is a node that is a gateway when its label says so.
func labelled(t *testing.T, known bool, labels map[string]string) facts {
	exits, err := selector.ParseNode("--gateway-node-label", "role=exit")
	if err != nil {
		t.Fatal(err)
	}
	g := config.Gateway{Mode: "shared", Interface: "eth0", NodeLabel: exits}
	return facts{
		c: Config{Node: config.Node{Gateway: g}}, t: Tools{Find: bridgeless},
		nodeOK: known, node: local.Node{Labels: labels},
	}
}

// bridgeless is an Open vSwitch without external bridges.
func bridgeless(context.Context, string, extbridge.Query) (*hostplan.External, error) {
	return nil, errors.New("there is no such bridge")
}

// vswitchd is a node whose daemons say one thing.
func vswitchd(datapath, says string) facts {
	appctl := func(context.Context, string, string, string, ...string) (string, error) { return says, nil }
	return facts{c: Config{Timeout: time.Second,
		Node: config.Node{OVSAddress: "unix:/run/db.sock", DatapathType: datapath}}, t: Tools{Appctl: appctl}}
}

// Flows that lead to the same backends do not contradict each other; of others it
// is told whose they are.
func TestLeads(t *testing.T) {
	flow := func(hint, actions string) ovs.Row {
		return ovs.Row{"actions": actions, "external_ids": []any{"map", []any{[]any{"stage-hint", hint}}}}
	}
	const to = "; ct_lb_mark(backends=10.128.0.9:8080);"
	if have := leads([]ovs.Row{flow("a", "reg2[0..15] = 80"+to), flow("a", "reg2[0..15] = 443"+to)}); len(have) != 1 {
		t.Errorf("two ports of an address with one target: %q", have)
	}
	have := leads([]ovs.Row{flow("b", "ct_lb_mark(backends="+strings.Repeat("10.128.0.9:80,", 9)+"10.128.0.9:81);"),
		flow("c", "drop;")})
	want := []string{"10.128.0.9:80,10.128.0.9:80,10.128.0.9:80,10.128.0.9:80,10.1... (load balancer b...)",
		"drop; (load balancer c...)"}
	if !slices.Equal(have, want) {
		t.Errorf("have\n%q\nwant\n%q", have, want)
	}
}

// ACLs that name what does not exist are found. The sets that OVN makes of a port group exist.
func TestACLNames(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	h := facts{c: Config{Timeout: 5 * time.Second, Northbound: &config.OVSDB{Addresses: []string{remote}}},
		t: Tools{Schema: ovs.AskSchema, Ask: ovs.Ask}}
	nbctl := func(args ...string) { testkit.Run(t, "ovn-nbctl", append([]string{"--db=" + remote}, args...)...) }
	nbctl("pg-add", "g", "--", "create", "address_set", "name=s", "--",
		"acl-add", "g", "to-lport", "1", "outport == @g && ip4.src == {$s, $g_ip4}", "allow", "--",
		"acl-add", "g", "to-lport", "2", "eth.bcast", "drop")
	if f := checkACLNames(t.Context(), &h); f.Status != OK || !strings.HasPrefix(f.Message, "1 ACLs, whose") ||
		!strings.HasSuffix(f.Message, "can't read 1 others") {
		t.Errorf("sound ACLs: %+v", f)
	}
	nbctl("acl-add", "g", "to-lport", "3", "outport == @g && ip4.src == {$s, $gone}", "drop", "--",
		"acl-add", "g", "from-lport", "4", "inport == @left", "allow")
	f := checkACLNames(t.Context(), &h)
	for _, part := range []string{"(drop) names $gone, which does not exist: OVN ignores", "(allow) names @left"} {
		if f.Status != Problem || !strings.Contains(f.Message, part) || strings.Count(f.Message, "names") != 2 {
			t.Errorf("want a problem with %q: %+v", part, f)
		}
	}
	h.c.Northbound.Addresses = []string{"unix:/nonexistent"}
	if f := checkACLNames(t.Context(), &h); f.Status != NotChecked || !strings.Contains(f.Message, "no such file") {
		t.Errorf("no database: %+v", f)
	}
}

// The Northbound database is asked when its address is given.
func TestNorthbound(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	h := facts{c: Config{Timeout: time.Second,
		Northbound: &config.OVSDB{Addresses: []string{"unix:/nonexistent", remote}}}, t: Tools{Schema: ovs.AskSchema}}
	if f := checkNorthbound(t.Context(), &h); f.Status != OK || !strings.Contains(f.Message, "schema 7.11.0") {
		t.Errorf("%+v", f)
	}
	h.c.Northbound.Addresses = h.c.Northbound.Addresses[:1]
	if f := checkNorthbound(t.Context(), &h); f.Status != Problem || !strings.Contains(f.Message, "no such file") {
		t.Errorf("%+v", f)
	}
	h.c.Northbound.Addresses = []string{"ssl:127.0.0.1:1"}
	if f := checkNorthbound(t.Context(), &h); f.Status != Problem || !strings.Contains(f.Message, "--nb-privkey") {
		t.Errorf("%+v", f)
	}
}

// A database that has never been used, or that an old Open vSwitch made.
func TestEmptyAndOldDatabase(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.VSwitchSchema())
	h := facts{c: Config{Timeout: time.Second, Node: config.Node{OVSAddress: remote}},
		t: Tools{Ask: ovs.Ask, Schema: ovs.AskSchema}}
	h.ovsErr = h.timed(t.Context(), h.readOVS)
	if f := checkOVSDatabase(t.Context(), &h); f.Status != Problem || f.Fix[0] != "ovs-vsctl --no-wait init" {
		t.Errorf("%+v", f)
	}
	h.ovsErr = nil
	delete(h.schema.Columns, "Port")
	if f := checkOVSDatabase(t.Context(), &h); f.Status != Problem || !strings.Contains(f.Message, "has no Port.") ||
		!strings.Contains(f.Message, "more") {
		t.Errorf("%+v", f)
	}
}

func TestRepairs(t *testing.T) {
	have := item.Change{Have: hostplan.Route{Dest: netip.MustParsePrefix("10.0.0.0/8"), Link: "m0", Protocol: 78}}
	if got := repair(have); got != "ip route del 10.0.0.0/8 dev m0 proto 78" {
		t.Error(got)
	}
	have = item.Change{Have: hostplan.Neighbour{Link: "m0", IP: netip.MustParseAddr("10.0.0.1")}}
	if got := repair(have); got != "ip neigh del 10.0.0.1 dev m0" {
		t.Error(got)
	}
}

// The two forms of a report. That of JSON is documented, and must not change.
func TestForms(t *testing.T) {
	r := Diagnosis{Node: "n1", Problems: 1, Findings: []Finding{
		{Check: "br-int", Status: OK, Message: "fine"},
		{Check: "routes", Status: Problem, Message: "missing <x>", Fix: []string{"# by hand:", "ip route add"}},
		{Check: "clock", Status: NotChecked, Message: "no API server"},
	}}
	var text, js bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&js)); err != nil {
		t.Fatal(err)
	}
	const want = `ok           br-int                fine
problem      routes                missing <x>
                                     # by hand:
                                     ip route add
not checked  clock                 no API server
node n1: 1 problem, 1 of 3 checks not made
`
	if text.String() != want {
		t.Errorf("text:\n%s\nwant:\n%s", text.String(), want)
	}
	var got any
	if err := json.Unmarshal(js.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	const wantJSON = `{"node":"n1","problems":1,"findings":[{"check":"br-int","status":"ok","message":"fine"},` +
		`{"check":"routes","status":"problem","message":"missing <x>","fix":["# by hand:","ip route add"]},` +
		`{"check":"clock","status":"not checked","message":"no API server"}]}`
	var compact bytes.Buffer
	if err := json.Compact(&compact, js.Bytes()); err != nil || compact.String() != wantJSON {
		t.Errorf("JSON %s, %v", compact.String(), err)
	}
	if count(2, "problem") != "2 problems" {
		t.Error(count(2, "problem"))
	}
}
