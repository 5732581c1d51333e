package cni_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// normal returns JSON with sorted keys, and with a placeholder for the MAC of the node's end.
func normal(t *testing.T, raw []byte) string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	for _, i := range v["interfaces"].([]any) {
		if m := i.(map[string]any); m["sandbox"] == nil && len(m["mac"].(string)) == 17 {
			m["mac"] = "any"
		}
	}
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Each version of the specification gets the result in its own form, after the result of an earlier plugin.
func TestVersionsInAChain(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	p := web()
	b.create(t, p, true)
	for i, v := range []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		ns := netns(t, fmt.Sprint("v", i))
		id := fmt.Sprintf("%d-container-of-version", i)
		install(t, id)
		four, six, mtu := "", "", ""
		if v < "1.0.0" {
			four, six = `"version":"4",`, `"version":"6",`
		}
		if v >= "1.1.0" {
			mtu = `"mtu":1442,`
		}
		before := `{"name":"first0","mac":"02:00:00:00:00:09","sandbox":"` + ns + `"}`
		beforeIP := `{` + four + `"interface":0,"address":"192.0.2.1/24","gateway":"192.0.2.254"}`
		beforeRoute := `{"dst":"198.51.100.0/24","gw":"192.0.2.254"}`
		c := add(p, id, ns).in(v).after(json.RawMessage(`{"cniVersion":"` + v + `","interfaces":[` + before + `],
			"ips":[` + beforeIP + `],"routes":[` + beforeRoute + `],
			"dns":{"nameservers":["192.0.2.53"],"domain":"first.example"}}`))
		c.extra = map[string]any{"dns": map[string]any{"nameservers": []string{"10.96.0.10"},
			"search": []string{"cluster.local"}, "options": []string{"ndots:5"}}}
		out := c.succeed(t)
		want := `{"cniVersion":"` + v + `",
			"interfaces":[` + before + `,{` + mtu + `"name":"` + names.HostVeth(id) + `","mac":"any"},
				{` + mtu + `"name":"eth0","mac":"0a:58:0a:80:02:03","sandbox":"` + ns + `"}],
			"ips":[` + beforeIP + `,{` + four + `"interface":2,"address":"10.128.2.3/23","gateway":"10.128.2.1"},
				{` + six + `"interface":2,"address":"fd01:0:0:1::3/64","gateway":"fd01:0:0:1::1"}],
			"routes":[` + beforeRoute + `,{"dst":"0.0.0.0/0","gw":"10.128.2.1"},{"dst":"::/0","gw":"fd01:0:0:1::1"}],
			"dns":{"nameservers":["192.0.2.53","10.96.0.10"],"domain":"first.example",
				"search":["cluster.local"],"options":["ndots:5"]}}`
		if have, want := normal(t, out), normal(t, []byte(want)); have != want {
			t.Errorf("version %s: result\n%s\nwant\n%s", v, have, want)
		}
		if v >= "0.4.0" {
			c.as(protocol.Check).after(out).succeed(t)
		} else {
			c.as(protocol.Check).after(out).fail(t, 1, "does not allow CHECK")
		}
		if v < "1.1.0" {
			c.as(protocol.GC).fail(t, 1, "does not allow GC")
			c.as(protocol.Status).fail(t, 1, "does not allow STATUS")
		}
		c.as(protocol.Del).after(out).succeed(t)
	}
	for _, v := range []string{"0.2.0", "0.3.2", "2.0.0"} {
		add(p, idA, "/run/netns/v0").in(v).fail(t, 1, "incompatible")
	}
	printsVersions(t)
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}
}

func printsVersions(t *testing.T) {
	t.Helper()
	out := testkit.Run(t, "sh", "-c", "CNI_COMMAND=VERSION "+plugin+" </dev/null")
	const want = `{"cniVersion":"1.1.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}`
	if strings.TrimSpace(out) != want {
		t.Errorf("VERSION prints %s, want %s", out, want)
	}
}

// In a chain with bandwidth, that plugin finds the node's end of the pair in the result and limits it. Its traces
// vanish with the pod.
func TestChainWithBandwidth(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	b.startOVN(t, true)
	other := pod{"other", "uid-other", []string{"10.128.2.9/23", "fd01:0:0:1::9/64"},
		[]string{"10.128.2.1", "fd01:0:0:1::1"}, nil}
	for _, p := range []pod{web(), other} {
		logicalPort(t, p)
		b.create(t, p, true)
	}
	add(other, idB, netns(t, other.name)).succeed(t)
	devices := func() string { return lines(testkit.Run(t, "ip", "-br", "link", "show", "type", "ifb")) }
	before := devices()
	list, err := libcni.ConfListFromBytes([]byte(`{"cniVersion":"1.0.0","name":"ovn-kubernetes",` +
		`"plugins":[{"type":"ovn_cni","socket":"` + socket + `"},
		{"type":"bandwidth","capabilities":{"bandwidth":true}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	rt := runtimeConf(t, idA, "web")
	rt.CapabilityArgs = map[string]any{"bandwidth": map[string]int{"ingressRate": 8000000, "ingressBurst": 800000,
		"egressRate": 8000000, "egressBurst": 800000}}
	lib := libcni.NewCNIConfigWithCacheDir([]string{testkit.ProgramDir}, "/run/cache", nil)
	if _, err := lib.AddNetworkList(t.Context(), list, rt); err != nil {
		t.Fatalf("ADD: %v", err)
	}
	if got := testkit.Run(t, "tc", "qdisc", "show", "dev", names.HostVeth(idA)); !strings.Contains(got, "tbf") ||
		!strings.Contains(got, "ingress") {
		t.Errorf("queueing disciplines of the node's end:\n%s\nwant tbf and ingress", got)
	}
	if err := lib.CheckNetworkList(t.Context(), list, rt); err != nil {
		t.Errorf("CHECK: %v", err)
	}
	for _, address := range []string{"10.128.2.9", "fd01:0:0:1::9"} {
		testkit.Run(t, "ip", "netns", "exec", "web", "ping", "-c1", "-W5", address)
	}
	for range 2 {
		if err := lib.DelNetworkList(t.Context(), list, rt); err != nil {
			t.Errorf("DEL: %v", err)
		}
	}
	if got := devices(); got != before {
		t.Errorf("ifb devices after DEL:\n%s\nbefore:\n%s", got, before)
	}
	if got := left(t); strings.Contains(got, names.HostVeth(idA)) {
		t.Errorf("left on the node:\n%s", got)
	}
}

// cnitool, the command line tool of the CNI project, works with a configuration file.
func TestCnitool(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	tool := testkit.Program(t, "cnitool")
	b.startOVN(t, true)
	logicalPort(t, web())
	b.create(t, web(), true)
	ns := netns(t, "web")
	// It keeps results below /var/lib/cni.
	testkit.Run(t, "mount", "-t", "tmpfs", "tmpfs", "/var/lib")
	conf := `{"cniVersion":"1.1.0","name":"ovn-kubernetes","plugins":[{"type":"ovn_cni","socket":"` + socket + `"}]}`
	if err := os.MkdirAll("/run/net.d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/run/net.d/10-ovn-kubernetes.conflist", []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(verb string) (string, error) {
		cmd := exec.Command(tool, verb, "ovn-kubernetes", ns)
		cmd.Env = append(os.Environ(), "NETCONFPATH=/run/net.d", "CNI_PATH="+testkit.ProgramDir,
			"CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=uid-web")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, verb := range []string{"status", "add", "check", "del", "del", "add"} {
		out, err := run(verb)
		if err != nil {
			t.Fatalf("cnitool %s: %v\n%s", verb, err, out)
		}
		if verb == "add" && (!strings.Contains(out, `"address": "fd01:0:0:1::3/64"`) ||
			!strings.Contains(out, `"mtu": 1442`)) {
			t.Errorf("cnitool add prints:\n%s", out)
		}
	}
	testkit.Run(t, "ovs-vsctl", "remove", "interface", strings.Fields(left(t))[0][:15], "external_ids", "iface-id")
	if out, err := run("check"); err == nil || !strings.Contains(out, "external_ids:iface-id") {
		t.Errorf("cnitool check of a broken pod: %v\n%s", err, out)
	}
	// cnitool has no list of valid attachments: it deletes those that it remembers, and its GC without a list is refused.
	if out, err := run("gc"); err == nil || !strings.Contains(out, "has no cni.dev/valid-attachments") {
		t.Errorf("cnitool gc: %v\n%s", err, out)
	}
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}
	b.stop()
	if out, err := run("status"); err == nil || !strings.Contains(out, "node agent is not running") {
		t.Errorf("cnitool status without an agent: %v\n%s", err, out)
	}
}
