package cni_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// libcni, the library of the runtimes, calls the plugin by the configuration list.
func TestLibcni(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	p := web()
	b.create(t, p, true)
	conf, err := libcni.ConfListFromBytes([]byte(`{
			"cniVersion":"1.0.0","cniVersions":["0.4.0","1.0.0","1.1.0"],"name":"ovn-kubernetes",
		"plugins":[{"type":"ovn_cni","socket":"` + socket + `"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	rt := &libcni.RuntimeConf{
		ContainerID: idA, NetNS: netns(t, "web"), IfName: "eth0",
		Args: [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", "web"},
			{"K8S_POD_UID", "uid-web"}},
	}
	lib := libcni.NewCNIConfigWithCacheDir([]string{testkit.ProgramDir}, "/run/cache", nil)
	if err := lib.GetStatusNetworkList(t.Context(), conf); err != nil {
		t.Errorf("STATUS: %v", err)
	}
	install(t, idA)
	r, err := lib.AddNetworkList(t.Context(), conf, rt)
	if err != nil {
		t.Fatalf("ADD: %v", err)
	}
	if r.Version() != "1.1.0" {
		t.Errorf("the result is of version %s, want the highest that both know, 1.1.0", r.Version())
	}
	if err := lib.CheckNetworkList(t.Context(), conf, rt); err != nil {
		t.Errorf("CHECK: %v", err)
	}
	if err := lib.GCNetworkList(t.Context(), conf, &libcni.GCArgs{}); err != nil {
		t.Errorf("GC: %v", err)
	}
	if got := left(t); got != "" {
		t.Errorf("left after GC without valid attachments:\n%s", got)
	}
	if err := lib.DelNetworkList(t.Context(), conf, rt); err != nil {
		t.Errorf("DEL: %v", err)
	}
}

func TestStatusAndGC(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	status := call{command: protocol.Status, version: "1.1.0"}
	status.succeed(t)
	b.node.miss(errors.New("no flows yet"))
	status.fail(t, protocol.CodeNotAvailable, "no flows yet")
	b.node.miss(nil)

	for i, id := range []string{idA, idB} {
		p := numbered(i)
		b.create(t, p, true)
		install(t, id)
		add(p, id, netns(t, p.name)).succeed(t)
	}
	testkit.Run(t, "ovs-vsctl", "add-port", "br-int", "foreign", "--", "set", "interface", "foreign", "type=internal")
	gc := call{command: protocol.GC, version: "1.1.0"}
	gc.fail(t, protocol.CodeInvalidConfig, "cni.dev/valid-attachments")
	gc.extra = map[string]any{"cni.dev/valid-attachments": []map[string]string{{"containerID": idB, "ifname": "eth0"}}}
	for range 2 {
		gc.succeed(t)
		if got := strings.Fields(testkit.Run(t, "ovs-vsctl", "list-ports", "br-int")); len(got) != 2 ||
			got[0] != names.HostVeth(idB) || got[1] != "foreign" {
			t.Errorf("ports after GC: %v", got)
		}
		if _, err := net.InterfaceByName(names.HostVeth(idA)); err == nil {
			t.Error("the interface of a container that is gone is there after GC")
		}
		if _, err := net.InterfaceByName(names.HostVeth(idB)); err != nil {
			t.Errorf("the interface of a valid container after GC: %v", err)
		}
	}
}

// The plugin reports wrong calls and a missing agent.
func TestBadCalls(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, time.Second)
	p := web()
	a := add(p, idA, netns(t, "web"))
	for _, name := range []string{"CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_COMMAND", "CNI_PATH"} {
		c := a
		c.drop = name
		if name != "CNI_COMMAND" {
			c.fail(t, protocol.CodeInvalidEnv, name)
		}
	}
	noPod := a
	noPod.args = "K8S_POD_NAME=web"
	noPod.fail(t, protocol.CodeInvalidEnv, "CNI_ARGS", "K8S_POD_NAMESPACE")
	a.as("SING").fail(t, protocol.CodeInvalidEnv, "SING")
	a.as(protocol.Check).fail(t, protocol.CodeInvalidConfig, "prevResult")
	bad := a
	bad.extra = map[string]any{"prevResult": "x"}
	bad.fail(t, protocol.CodeDecoding, "prevResult")

	answer := raw(t, binary.BigEndian.AppendUint32(nil, protocol.MaxSize+1))
	if answer.Error == nil || !strings.Contains(answer.Error.Msg, "at most 1048576 are allowed") {
		t.Errorf("answer to an oversize request: %+v", answer)
	}
	answer = raw(t, append(binary.BigEndian.AppendUint32(nil, 3), "{x}"...))
	if answer.Error == nil || answer.Error.Code != protocol.CodeDecoding {
		t.Errorf("answer to a request that is not JSON: %+v", answer)
	}

	info, err := os.Stat("/run/cni")
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's directory has mode %v (%v), want 0700", info.Mode(), err)
	}
	testkit.Run(t, "chmod", "755", "/run/cni")
	testkit.Run(t, "chmod", "777", socket)
	cmd := a.cmd(t.Context(), t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.Output(); err == nil || !strings.Contains(string(out), "went away") {
		t.Errorf("a caller that is not root: %v %s, want to be cut off", err, out)
	}

	if _, err := server.Listen(socket); err == nil || !strings.Contains(err.Error(), "another agent") {
		t.Errorf("a second agent on the socket: %v", err)
	}
	b.stop()
	a.fail(t, protocol.CodeTryAgain, "node agent is not running", socket)
	a.as(protocol.Status).in("1.1.0").fail(t, protocol.CodeNotAvailable, "node agent is not running")
	l, err := server.Listen(socket)
	if err != nil {
		t.Fatalf("a new agent on an old socket: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A client that only checks whether an agent is listening gets no answer and no log line.
func TestLook(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, time.Second)
	b.stop()
	var log bytes.Buffer
	b.startServer(t, func(s *server.Server) { s.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	var status bytes.Buffer
	if err := protocol.Write(&status, protocol.Request{Command: protocol.Status, Config: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	raw(t, status.Bytes()) // by now the server has accepted the connection before
	b.stop()
	if got := log.String(); strings.Contains(got, "WARN") || strings.Count(got, "\n") != 1 {
		t.Errorf("the log, of one request:\n%s", got)
	}
}

// raw sends bytes to the server and reads its answer.
func raw(t *testing.T, message []byte) (r protocol.Response) {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(message); err != nil {
		t.Fatal(err)
	}
	if err := protocol.Read(c, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// ADD and DEL of many containers run at the same time.
func TestManyAtOnce(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	const n = 24
	cmds := make([]*exec.Cmd, n)
	var calls [n]call
	for i := range n {
		p := numbered(i)
		b.create(t, p, true)
		id := fmt.Sprintf("%04d-container-of-many", i)
		install(t, id)
		calls[i] = add(p, id, netns(t, p.name))
		cmds[i] = calls[i].cmd(t.Context(), t)
	}
	for _, c := range cmds {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range cmds {
		if err := c.Wait(); err != nil {
			t.Errorf("ADD %d: %v", i, err)
		}
	}
	if got := strings.Fields(testkit.Run(t, "ovs-vsctl", "list-ports", "br-int")); len(got) != n {
		t.Errorf("%d ports, want %d: %v", len(got), n, got)
	}
	for i := range n {
		cmds[i] = calls[i].as(protocol.Del).cmd(t.Context(), t)
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range cmds {
		if err := c.Wait(); err != nil {
			t.Errorf("DEL %d: %v", i, err)
		}
	}
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}
}

// The plugin stays small: four packages of this project, no Kubernetes client, statically linked, at most 5 MB.
func TestPluginIsSmall(t *testing.T) {
	const cmd = "github.com/northbound-net/northbound/go-controller/cmd/ovn_cni"
	var ours []string
	for _, p := range strings.Fields(testkit.Run(t, "go", "list", "-deps", cmd)) {
		if strings.HasPrefix(p, "github.com/northbound-net/") {
			ours = append(ours, p)
		}
		if strings.HasPrefix(p, "k8s.io/") || strings.Contains(p, "libovsdb") {
			t.Errorf("it is linked from %s", p)
		}
	}
	if len(ours) == 0 || len(ours) > 4 {
		t.Errorf("it is linked from %d packages of ours, want 1 to 4: %v", len(ours), ours)
	}
	out := testkit.Program(t, "ovn_cni")
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 5<<20 {
		t.Errorf("it has %d bytes, want at most %d", info.Size(), 5<<20)
	}
	binary, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	for _, p := range binary.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a program header %v: it is not static", p.Type)
		}
	}
	var v struct{ SupportedVersions []string }
	run := exec.Command(out)
	run.Env = []string{"CNI_COMMAND=VERSION"}
	if text, err := run.Output(); err != nil || json.Unmarshal(text, &v) != nil || len(v.SupportedVersions) != 5 {
		t.Errorf("VERSION without any other variable: %v %s", err, text)
	}
}
