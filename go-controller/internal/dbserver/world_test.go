package dbserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/northbound-net/northbound/go-controller/internal/dbserver/link"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/pki"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

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
	m := &machine{ended: make(chan struct{}), Member: Member{
		Node: node, Listen: "127.0.0.1", Cluster: w, Log: slog.New(slog.DiscardHandler),
		Metrics: metrics.NewDatabase(prometheus.NewRegistry()),
		Layout: Layout{Files: filepath.Join(dir, "files"), Run: filepath.Join(dir, "run"), Schemas: "/usr/share/ovn",
			Certificates: filepath.Join(dir, "certificates")},
	}}
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

// members waits until a cluster has exactly these servers, and one of them leads.
func members(t *testing.T, machines ...*machine) {
	t.Helper()
	testkit.Eventually(t, "members of the cluster", func() string {
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
	testkit.Eventually(t, "ovn-nbctl on "+m.Node, func() string {
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
	testkit.Eventually(t, "switches on "+m.Node, func() string {
		have := strings.Fields(m.nbctl(t, "--bare", "--columns=name", "list", "Logical_Switch"))
		slices.Sort(have)
		if !slices.Equal(have, want) {
			return fmt.Sprintf("%v, want %v", have, want)
		}
		return ""
	})
}
