package dbserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/dbserver/link"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/pki"
)

// fakeCluster is what Kubernetes knows, without Kubernetes.
type fakeCluster struct {
	mutex  sync.Mutex
	nodes  []string
	record map[string]Record // by database
}

func (f *fakeCluster) Nodes(context.Context) ([]string, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.nodes), nil
}

func (f *fakeCluster) set(nodes ...string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.nodes = nodes
}

func (f *fakeCluster) Registry(d Database) Registry { return fakeRegistry{f, d.Short} }

type fakeRegistry struct {
	*fakeCluster
	database string
}

func (f fakeRegistry) Read(context.Context) (Record, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	r := f.record[f.database]
	r.Servers = maps.Clone(r.Servers)
	return r, nil
}

func (f fakeRegistry) Update(_ context.Context, change func(*Record) error) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	r := f.record[f.database]
	r.Servers = maps.Clone(r.Servers)
	if err := change(&r); err != nil {
		return err
	}
	f.record[f.database] = r
	return nil
}

// world is several machines on one: each has directories of its own, and an address of the loopback interface.
type world struct {
	*fakeCluster
	dir       string
	authority *pki.Authority
	ca        []byte
}

func newWorld(t *testing.T, nodes ...string) *world {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "db") // a socket's path has at most 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	ca, key, err := pki.NewAuthority("ovn-nb-ca", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a, err := pki.ParseAuthority(ca, key)
	if err != nil {
		t.Fatal(err)
	}
	return &world{&fakeCluster{nodes: nodes, record: map[string]Record{}}, dir, a, ca}
}

// certify writes a certificate of the authority, as `ovnkube certificates` does.
func (w *world) certify(t *testing.T, dir, name string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := w.authority.Sign(pki.Leaf{CommonName: name, PublicKey: k.Public(), Lifetime: time.Hour,
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	both := slices.Concat(cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	for file, contents := range map[string][]byte{"ovn-nb-current.pem": both, "ovn-nb-ca.crt": w.ca} {
		if err := os.WriteFile(filepath.Join(dir, file), contents, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// loopback is a node's address: n1 has 127.0.0.1.
func loopback(node string) netip.Addr {
	return netip.MustParseAddr("127.0.0." + strings.TrimPrefix(node, "n"))
}

// machine is one node's servers.
type machine struct {
	Member
	stop  func()
	ended chan struct{} // closed when the server has ended
}

// start starts the Northbound server of a node, with the link to others.
func (w *world) start(t *testing.T, node string, port int) *machine {
	t.Helper()
	dir := filepath.Join(w.dir, node)
	m := &machine{ended: make(chan struct{}), Member: Member{Node: node, Listen: "127.0.0.1", Cluster: w, Log: slog.New(slog.DiscardHandler),
		Metrics: metrics.NewDatabase(prometheus.NewRegistry()), Layout: Layout{Files: filepath.Join(dir, "files"), Run: w.run(node), Schemas: "/usr/share/ovn",
			Certificates: filepath.Join(dir, "certificates")}}}
	w.certify(t, m.Layout.Certificates, serverName)
	nb := Databases()[0]
	if err := m.Prepare(t.Context(), nb); err != nil {
		t.Fatal(err)
	}
	argv := slices.DeleteFunc(m.ServerArgs(nb), func(a string) bool { return strings.HasPrefix(a, "--remote=db:") })
	cmd := exec.Command(argv[0], argv[1:]...)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	cmd.Env = append(os.Environ(), m.ServerEnv()...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		cmd.Wait() //nolint:errcheck // it is killed, or ends by itself
		close(m.ended)
	}()
	ctx, cancel := context.WithCancel(context.Background())
	l := w.link(m.Member, port)
	var running sync.WaitGroup
	running.Go(func() { m.Keep(ctx, nb) })
	running.Go(func() { l.Lead(ctx, 10*time.Millisecond) })
	running.Go(func() {
		if err := l.Serve(ctx); err != nil {
			t.Errorf("Serve on %s: %v", node, err)
		}
	})
	m.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		<-m.ended
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(m.stop)
	return m
}

func (w *world) run(node string) string { return filepath.Join(w.dir, node, "run") }

func (w *world) link(m Member, port int) *link.Link {
	return &link.Link{Listen: loopback(m.Node).String(), Port: port, Node: m.Node, Channels: m.Channels(), TLS: m.TLS,
		Log: m.Log, Addresses: func() map[string][]netip.Addr {
			out := map[string][]netip.Addr{}
			for _, n := range []string{"n1", "n2", "n3", "n4"} {
				out[n] = []netip.Addr{loopback(n)}
			}
			return out
		}}
}

// freePort is a TCP port that no machine uses.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing is written to it
	return l.Addr().(*net.TCPAddr).Port
}

// eventually waits until check returns "".
func eventually(t *testing.T, what string, check func() string) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); ; {
		missing := check()
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %s", what, missing)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// members waits until a cluster has exactly these servers, and one of them leads.
func members(t *testing.T, machines ...*machine) {
	t.Helper()
	eventually(t, "members of the cluster", func() string {
		var want, have []string
		leaders := 0
		var all status
		r, err := machines[0].Cluster.Registry(Databases()[0]).Read(t.Context())
		if err != nil {
			return err.Error()
		}
		for _, m := range machines {
			want = append(want, m.Node+" "+r.Servers[m.Node][:4])
			s, err := m.status(t.Context(), Databases()[0])
			if err != nil {
				return err.Error()
			}
			if s.leader {
				leaders, all = leaders+1, s
			}
		}
		for _, s := range all.servers {
			have = append(have, s.node+" "+s.id)
		}
		slices.Sort(have)
		if leaders != 1 || !slices.Equal(have, want) {
			return fmt.Sprintf("%d leaders, servers on %v, want %v", leaders, have, want)
		}
		return ""
	})
}

// nbctl runs ovn-nbctl at a machine's server, which need not lead, and tries again until it takes part in the cluster.
func (m *machine) nbctl(t *testing.T, args ...string) (out string) {
	t.Helper()
	eventually(t, "ovn-nbctl on "+m.Node, func() string {
		var err error
		if out, err = output(t.Context(), "ovn-nbctl", append([]string{"--db=unix:" + m.Layout.Socket(Databases()[0]),
			"--no-leader-only", "--timeout=20"}, args...)...); err != nil {
			return err.Error()
		}
		return ""
	})
	return out
}

// switches waits until the machine's server has these logical switches.
func (m *machine) switches(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, "switches on "+m.Node, func() string {
		have := strings.Fields(m.nbctl(t, "--bare", "--columns=name", "list", "Logical_Switch"))
		slices.Sort(have)
		if !slices.Equal(have, want) {
			return fmt.Sprintf("%v, want %v", have, want)
		}
		return ""
	})
}

// TestCluster takes a database from one server to three, and through the loss of a disk.
func TestCluster(t *testing.T) {
	w := newWorld(t)
	port := freePort(t)
	n1 := w.start(t, "n1", port)
	members(t, n1)
	n1.nbctl(t, "ls-add", "a")

	w.set("n1", "n2", "n3")
	n2, n3 := w.start(t, "n2", port), w.start(t, "n3", port)
	members(t, n1, n2, n3)
	n3.switches(t, "a")
	n2.nbctl(t, "ls-add", "b")

	n3.stop()
	if err := os.RemoveAll(n3.Layout.Files); err != nil {
		t.Fatal(err)
	}
	n3 = w.start(t, "n3", port)
	members(t, n1, n2, n3) // the former server of n3 is removed
	sum := 0.0
	for _, m := range []*machine{n1, n2, n3} {
		sum += testutil.ToFloat64(m.Metrics.Removed.WithLabelValues("nb"))
	}
	if sum != 1 {
		t.Errorf("northbound_database_servers_removed_total is %v, want 1", sum)
	}
	n3.switches(t, "a", "b")
}

// TestOneIsLeft goes on with the only one of three servers whose disk is left. Clients that saw the former cluster must
// not take the new one for an older one.
func TestOneIsLeft(t *testing.T) {
	w := newWorld(t, "n1", "n2", "n3")
	port := freePort(t)
	n1, n2, n3 := w.start(t, "n1", port), w.start(t, "n2", port), w.start(t, "n3", port)
	members(t, n1, n2, n3)
	n1.nbctl(t, "ls-add", "a")
	n2.switches(t, "a")
	before := n2.index(t)
	n1.stop()
	n3.stop()
	n2.stop()
	w.set("n2")
	n2 = w.start(t, "n2", port)
	members(t, n2)
	n2.switches(t, "a")
	if after := n2.index(t); after <= before {
		t.Errorf("the index of the new cluster is %d, that of the former one was %d", after, before)
	}
	w.set("n1", "n2", "n3")
	n1, n3 = w.start(t, "n1", port), w.start(t, "n3", port)
	members(t, n1, n2, n3)
	n1.switches(t, "a")
}

// index is how far a server's log is (ovsdb-server(5), table Database).
func (m *machine) index(t *testing.T) int64 {
	t.Helper()
	out, err := output(t.Context(), "ovsdb-client", "--timeout=10", "query", "unix:"+m.Layout.Socket(Databases()[0]),
		`["_Server",{"op":"select","table":"Database","where":[["name","==","OVN_Northbound"]],"columns":["index"]}]`)
	if err != nil {
		t.Fatal(err)
	}
	var results []struct{ Rows []struct{ Index int64 } }
	if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		t.Fatalf("index of the database: %v, %s", err, out)
	}
	return results[0].Rows[0].Index
}

// TestReplacedNode names another node instead of one, and later that one again. The server of the node that is not
// named any more goes on until its successor is there, and then ends.
func TestReplacedNode(t *testing.T) {
	w := newWorld(t, "n1", "n2", "n3")
	port := freePort(t)
	n1, n2, n3 := w.start(t, "n1", port), w.start(t, "n2", port), w.start(t, "n3", port)
	members(t, n1, n2, n3)
	w.set("n1", "n2", "n4")
	n4 := w.start(t, "n4", port)
	members(t, n1, n2, n4)
	select {
	case <-n3.ended:
	case <-time.After(60 * time.Second):
		t.Fatal("the server of n3 is no member any more, and goes on")
	}
	w.set("n1", "n2", "n3")
	n3.stop()
	n3 = w.start(t, "n3", port)
	members(t, n1, n2, n3)
	n3.nbctl(t, "ls-add", "a")
	n1.switches(t, "a")
	<-n4.ended
}

// TestRecord restores a record that was deleted, and ends a server of a cluster that is not the recorded one.
func TestRecord(t *testing.T) {
	w := newWorld(t, "n1")
	n1 := w.start(t, "n1", freePort(t))
	members(t, n1)
	want := w.record["nb"]
	forget := func(r *Record) error { *r = Record{}; return nil }
	if err := w.Registry(Databases()[0]).Update(t.Context(), forget); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the record", func() string {
		have, err := w.Registry(Databases()[0]).Read(t.Context())
		if err != nil || have.Cluster != want.Cluster || !maps.Equal(have.Servers, want.Servers) {
			return fmt.Sprintf("%+v, %v, want %+v", have, err, want)
		}
		return ""
	})
	if err := w.Registry(Databases()[0]).Update(t.Context(), func(r *Record) error {
		r.Cluster = "another"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-n1.ended:
	case <-time.After(60 * time.Second):
		t.Fatal("the server goes on although another cluster is recorded")
	}
}

// TestEnterRaced refuses to enter a server when the record is of another cluster than before.
func TestEnterRaced(t *testing.T) {
	r := Record{Cluster: "c2"}
	if err := enter(file{cluster: "c1", server: "s1"}, "n1", "c1", false)(&r); !errors.Is(err, errChanged) {
		t.Errorf("enter: %v, want %v", err, errChanged)
	}
}

// TestConnections has the leader listen for clients, with the probe interval that docs/operate/high-availability.md
// names.
func TestConnections(t *testing.T) {
	w := newWorld(t)
	m := w.start(t, "n1", freePort(t))
	eventually(t, "Connection", func() string {
		have := m.nbctl(t, "--bare", "--columns=target,inactivity_probe", "list", "Connection")
		if want := "pssl:6641:127.0.0.1\n60000"; have != want {
			return fmt.Sprintf("%q, want %q", have, want)
		}
		return ""
	})
	for name, gauge := range map[string]*prometheus.GaugeVec{
		"up": m.Metrics.Up, "leader": m.Metrics.Leader, "servers": m.Metrics.Servers,
	} {
		if have := testutil.ToFloat64(gauge.WithLabelValues("nb")); have != 1 {
			t.Errorf("northbound_database_%s is %v, want 1", name, have)
		}
	}
	if have := testutil.ToFloat64(m.Metrics.Bytes.WithLabelValues("nb")); have < 10_000 {
		t.Errorf("northbound_database_file_bytes is %v, want at least the schema's size", have)
	}
	if have := m.nbctl(t, "get", "NB_Global", ".", "options:northd_probe_interval"); have != `"10000"` {
		t.Errorf("northd_probe_interval is %s, want 10000", have)
	}
}

// TestStrangers cannot reach the databases through the link: whoever has no certificate, one of another authority, or
// one of another name.
func TestStrangers(t *testing.T) {
	w := newWorld(t)
	port := freePort(t)
	m := w.start(t, "n1", port)
	members(t, m)
	other := newWorld(t)
	for _, k := range []struct {
		name string
		keys func(dir string)
		want string
	}{
		{"without a certificate", nil, "tls: "},
		{"as another client of the authority", func(dir string) { w.certify(t, dir, "ovnkube-master") }, "tls: "},
		{"of another authority", func(dir string) { other.certify(t, dir, serverName) }, "tls: "},
		{"as a server", func(dir string) { w.certify(t, dir, serverName) }, ""},
	} {
		config := &tls.Config{}
		if k.keys != nil {
			dir := t.TempDir()
			k.keys(dir)
			var err error
			if config, err = (Member{Layout: Layout{Certificates: dir}}).TLS(); err != nil {
				t.Fatal(err)
			}
		}
		config.InsecureSkipVerify, config.VerifyConnection = true, nil
		config.NextProtos = []string{"ovn-nb"}
		have, err := ask(t, netip.AddrPortFrom(loopback("n1"), uint16(port)).String(), config)
		if k.want == "" && (err != nil || !strings.Contains(have, "OVN_Northbound")) {
			t.Errorf("%s: %q, %v, want the names of databases", k.name, have, err)
		}
		if k.want != "" && (err == nil || !strings.Contains(err.Error(), k.want)) {
			t.Errorf("%s: %q, %v, want an error with %q", k.name, have, err, k.want)
		}
	}
}

// ask asks the server behind a link for its databases (RFC 7047, section 4.1.1).
func ask(t *testing.T, address string, config *tls.Config) (string, error) {
	t.Helper()
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: config}
	c, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // it was only read
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(`{"id":0,"method":"list_dbs","params":[]}`)); err != nil {
		return "", err
	}
	buffer := make([]byte, 1024)
	n, err := c.Read(buffer)
	return strconv.Quote(string(buffer[:n])), err
}
