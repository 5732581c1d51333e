package cni_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/cni/podif"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// notCalled stands for a verb that the version of the specification does not have, so that libcni does not call the
// plugin.
const notCalled = 1 << 16

// outcomes are the error codes of the verbs in a state, 0 for success.
type outcomes struct {
	add, del, check, gc, status uint
	checkSays                   string
}

// state is a state of an attachment and its node in which the runtime may call the plugin.
type state struct {
	name  string
	enter func(*attachment)
	want  outcomes
}

func states() []state {
	return []state{
		{"nothing there", func(*attachment) {}, outcomes{check: 7, checkSays: "no prevResult"}},
		{"added", (*attachment).added, outcomes{add: 4}},
		{"half added", (*attachment).half, outcomes{check: 7, checkSays: "no prevResult"}},
		{"added, netns gone", func(a *attachment) {
			a.added()
			a.deleteNetns()
		}, outcomes{add: 4, check: 101, checkSays: "no such network namespace"}},
		{"replaced by a new sandbox", func(a *attachment) {
			a.added()
			a.replace()
		}, outcomes{add: 4, check: 101, checkSays: `external_ids:iface-id=""`}},
		{"agent not ready", func(a *attachment) {
			a.bed.node.miss(errors.New("no subnets yet"))
		}, outcomes{add: 11, check: 7, checkSays: "no prevResult", status: 50}},
		{"added, agent not ready", func(a *attachment) {
			a.added()
			a.bed.node.miss(errors.New("no subnets yet"))
		}, outcomes{add: 11, status: 50}},
		{"added, switch not there", func(a *attachment) {
			a.added()
			a.bed.node.miss(&server.LimitedError{Reason: errors.New("no OVS")})
		}, outcomes{add: 11, status: 51}},
		{"no agent", func(a *attachment) {
			a.bed.stop()
		}, outcomes{add: 11, check: 11, checkSays: "is not running", gc: 11, status: 50}},
	}
}

// attachment is a container of the matrix. libcni calls the plugin for it.
type attachment struct {
	t    *testing.T
	bed  *bed
	pod  pod
	lib  *libcni.CNIConfig
	list *libcni.NetworkConfigList
	rt   *libcni.RuntimeConf
	// newer is the sandbox that has replaced this one, nil for none.
	newer *libcni.RuntimeConf
}

func newAttachment(t *testing.T, b *bed, p pod, version string, n int) *attachment {
	t.Helper()
	list, err := libcni.ConfListFromBytes([]byte(`{"cniVersion":"` + version +
		`","name":"ovn-kubernetes","plugins":[{"type":"ovn_cni","socket":"` + socket + `"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	lib := libcni.NewCNIConfigWithCacheDir([]string{testkit.ProgramDir}, "/run/cache", nil)
	return &attachment{t: t, bed: b, pod: p, lib: lib, list: list, rt: runtimeConf(t, fmt.Sprintf("%04d-of-the-matrix", n),
		fmt.Sprintf("m%d", n))}
}

func runtimeConf(t *testing.T, id, ns string) *libcni.RuntimeConf {
	t.Helper()
	return &libcni.RuntimeConf{
		ContainerID: id, NetNS: netns(t, ns), IfName: "eth0",
		Args: [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", "web"},
			{"K8S_POD_UID", "uid-web"}},
	}
}

func (a *attachment) addTo(rt *libcni.RuntimeConf) {
	a.t.Helper()
	if _, err := a.lib.AddNetworkList(a.t.Context(), a.list, rt); err != nil {
		a.t.Fatalf("entering the state: ADD: %v", err)
	}
}

func (a *attachment) added() { a.t.Helper(); a.addTo(a.rt) }

// half makes what an agent leaves behind that is killed before it adds the port.
func (a *attachment) half() {
	a.t.Helper()
	specs := []podif.Spec{{ID: a.rt.ContainerID, IfName: "eth0", Network: a.pod.network()}}
	for key, n := range a.pod.further {
		_, iface := names.EntryOf(key)
		specs = append(specs, podif.Spec{ID: names.AttachmentID(a.rt.ContainerID, iface), IfName: iface, Network: n})
	}
	for _, spec := range specs {
		spec.Netns, spec.MTU, spec.Userspace = a.rt.NetNS, 1442, true
		if _, err := podif.Add(spec, func(string) {}); err != nil {
			a.t.Fatalf("entering the state: %v", err)
		}
	}
}

func (a *attachment) deleteNetns() {
	a.t.Helper()
	testkit.Run(a.t, "ip", "netns", "del", strings.TrimPrefix(a.rt.NetNS, "/run/netns/"))
}

func (a *attachment) replace() {
	a.t.Helper()
	a.newer = runtimeConf(a.t, "N"+a.rt.ContainerID, strings.TrimPrefix(a.rt.NetNS, "/run/netns/")+"n")
	a.addTo(a.newer)
}

// expect compares an error of libcni with the wanted code.
func (a *attachment) expect(verb string, err error, want uint, says string) {
	a.t.Helper()
	var code uint
	var e *types.Error
	switch {
	case errors.As(err, &e):
		code = e.Code
	case errors.Is(err, libcni.ErrorCheckNotSupp):
		code = notCalled
	case err != nil:
		a.t.Errorf("%s: %v is not a CNI error", verb, err)
		return
	}
	if code != want || err != nil && want != notCalled && !strings.Contains(err.Error(), says) {
		a.t.Errorf("%s: code %d (%v), want %d with %q", verb, code, err, want, says)
	}
}

// observe calls the verbs that do not change anything.
func (a *attachment) observe(version string, want outcomes) {
	a.t.Helper()
	info, err := a.lib.GetVersionInfo(a.t.Context(), "ovn_cni")
	if err != nil || strings.Join(info.SupportedVersions(), " ") != "0.3.0 0.3.1 0.4.0 1.0.0 1.1.0" {
		a.t.Errorf("VERSION: %v %v", info, err)
	}
	if version < "0.4.0" {
		want.check = notCalled
	}
	if version < "1.1.0" {
		want.status = 0 // libcni does not call the plugin, and reports no error
	}
	a.expect(protocol.Status, a.lib.GetStatusNetworkList(a.t.Context(), a.list), want.status, "")
	a.expect(protocol.Check, a.lib.CheckNetworkList(a.t.Context(), a.list, a.rt), want.check, want.checkSays)
}

func (a *attachment) add(version string, want outcomes) {
	a.t.Helper()
	result, err := a.lib.AddNetworkList(a.t.Context(), a.list, a.rt)
	a.expect(protocol.Add, err, want.add, "")
	if err != nil || want.add != 0 {
		return
	}
	raw, err := json.Marshal(result)
	if err != nil || result.Version() != version || strings.Count(string(raw), `"address":`) != 2 ||
		strings.Contains(string(raw), `"mtu"`) != (version >= "1.1.0") {
		a.t.Errorf("ADD: %v %s", err, raw)
	}
	if version >= "0.4.0" {
		a.expect("CHECK after ADD", a.lib.CheckNetworkList(a.t.Context(), a.list, a.rt), 0, "")
	}
}

// gc runs a GC in which the runtime knows only the container that replaces this one.
func (a *attachment) gc(version string, want outcomes) {
	a.t.Helper()
	args := &libcni.GCArgs{}
	if a.newer != nil {
		args.ValidAttachments = []types.GCAttachment{{ContainerID: a.newer.ContainerID, IfName: "eth0"}}
	}
	if version < "1.1.0" {
		want.gc = 0 // libcni deletes the attachments that it remembers, and does not call GC
	}
	a.expect(protocol.GC, a.lib.GCNetworkList(a.t.Context(), a.list, args), want.gc, "")
}

// finish ends the state: a DEL succeeds, does not touch the newer sandbox, and leaves nothing behind. With gone,
// nothing of this attachment may exist even before it.
func (a *attachment) finish(gone bool) {
	a.t.Helper()
	a.bed.node.miss(nil)
	// All names of its interfaces begin with these characters.
	if gone && strings.Contains("\n"+left(a.t), "\n"+a.rt.ContainerID[:8]) {
		a.t.Errorf("left on the node:\n%s", left(a.t))
	}
	if a.newer != nil {
		if a.list.CNIVersion >= "0.4.0" {
			a.expect("CHECK of the newer sandbox", a.lib.CheckNetworkList(a.t.Context(), a.list, a.newer), 0, "")
		}
		a.expect("DEL of the newer sandbox", a.lib.DelNetworkList(a.t.Context(), a.list, a.newer), 0, "")
		testkit.Run(a.t, "ip", "netns", "del", strings.TrimPrefix(a.newer.NetNS, "/run/netns/"))
	}
	for range 2 {
		a.expect("DEL at last", a.lib.DelNetworkList(a.t.Context(), a.list, a.rt), 0, "")
	}
	if got := left(a.t); got != "" {
		a.t.Errorf("left on the node:\n%s", got)
	}
	// The namespace is gone already in one state.
	testkit.Run(a.t, "sh", "-c", "ip netns del "+strings.TrimPrefix(a.rt.NetNS, "/run/netns/")+" 2>/dev/null || true")
}

// libcni calls every verb, in every version of the specification and every state, with a real OVN.
func TestVerbVersionState(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	matrix(t, web(), "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
}

// The same for a pod of three interfaces.
func TestVerbStateOfFurtherInterfaces(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	matrix(t, tenant(), "1.1.0")
}

// matrix calls every verb in every state of a pod.
func matrix(t *testing.T, p pod, versions ...string) {
	t.Helper()
	b := newBed(t, 20*time.Second)
	b.node.hasty = true
	b.startOVN(t, true)
	logicalPort(t, p)
	b.create(t, p, true)
	restart := func() { b.startServer(t, func(*server.Server) {}) } // runs until t ends, not a subtest
	n := 0
	for _, version := range versions {
		for _, s := range states() {
			for verb, call := range map[string]func(*attachment){
				"observe and DEL": func(a *attachment) {
					a.observe(version, s.want)
					a.expect(protocol.Del, a.lib.DelNetworkList(t.Context(), a.list, a.rt), s.want.del, "")
				},
				protocol.Add: func(a *attachment) { a.add(version, s.want) },
				protocol.GC:  func(a *attachment) { a.gc(version, s.want) },
			} {
				n++
				t.Run(strings.Join([]string{verb, version, s.name}, ", "), func(t *testing.T) {
					a := newAttachment(t, b, p, version, n)
					s.enter(a)
					call(a)
					if s.name == "no agent" {
						restart()
					}
					// Before 1.1.0 there is no GC for attachments that libcni does not remember.
					a.finish(verb != protocol.Add && (verb != protocol.GC || version >= "1.1.0" || s.name != "half added"))
				})
			}
		}
	}
}
