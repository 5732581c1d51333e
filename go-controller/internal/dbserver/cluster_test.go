package dbserver

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

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
func TestOneIsLeft(t *testing.T) { oneIsLeft(t, false) }

// TestRemovalUnfinished is the same where the removal of the two others was recorded, but they went before it took
// effect.
func TestRemovalUnfinished(t *testing.T) { oneIsLeft(t, true) }

func oneIsLeft(t *testing.T, recorded bool) {
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
	if d := Databases()[0]; recorded {
		r, err := n2.Cluster.Registry(d).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range []string{"n1", "n3"} {
			if err := n2.update(t.Context(), d, remove(node, r.Servers[node])); err != nil {
				t.Fatal(err)
			}
		}
	}
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

// TestRecord restores a record that was deleted, or is of an earlier cluster. It ends a server when a later cluster is
// recorded.
func TestRecord(t *testing.T) {
	w := newWorld(t, "n1")
	n1 := w.start(t, "n1", freePort(t))
	members(t, n1)
	registry := w.Registry(Databases()[0])
	want, err := registry.Read(t.Context())
	if err != nil || want.Cluster == "" || want.Generation == 0 {
		t.Fatalf("the record is %+v, %v", want, err)
	}
	becomes := func(now Record) {
		t.Helper()
		if err := registry.Update(t.Context(), func(r *Record) error { *r = now; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, now := range []Record{
		{},
		{Cluster: "another", Generation: want.Generation - 1, Servers: map[string]string{"n1": "former"}},
		{Cluster: want.Cluster, Generation: want.Generation, Servers: map[string]string{"n1": "former"}},
	} {
		becomes(now)
		testkit.Eventually(t, "the record", func() string {
			have, err := registry.Read(t.Context())
			if err != nil || have.Cluster != want.Cluster || have.Generation != want.Generation ||
				!maps.Equal(have.Servers, want.Servers) {
				return fmt.Sprintf("after %+v it is %+v, %v, want %+v", now, have, err, want)
			}
			return ""
		})
	}
	becomes(Record{Cluster: "another", Generation: want.Generation + 1})
	select {
	case <-n1.ended:
	case <-time.After(60 * time.Second):
		t.Fatal("the server goes on although a later cluster is recorded")
	}
}

// TestInterruptedJoin starts again with the file of a server that has the cluster's contents and is no member yet.
func TestInterruptedJoin(t *testing.T) {
	w := newWorld(t, "n1", "n2", "n3")
	port := freePort(t)
	n1, n2, n3 := w.start(t, "n1", port), w.start(t, "n2", port), w.start(t, "n3", port)
	members(t, n1, n2, n3)
	n3.stop()
	path := n3.Layout.File(Databases()[0])
	f, err := inspect(t.Context(), path)
	if err != nil || !f.joined {
		t.Fatalf("inspect: %+v, %v, want a member", f, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	status, err := n1.status(t.Context(), Databases()[0])
	if err != nil {
		t.Fatal(err)
	}
	// The same file without the lists of servers that have this one.
	var out bytes.Buffer
	for in := bufio.NewReader(bytes.NewReader(text)); ; {
		r, err := readRecord(in, int64(len(text)))
		if err != nil {
			break
		}
		delete(r, "servers")
		if r["prev_servers"] != nil {
			r["prev_servers"] = json.RawMessage(`{"` + status.id + `":"unix:raft/nb/n1"}`)
		}
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %d %x\n%s", magic, len(body), sha1.Sum(body), body)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := inspect(t.Context(), path); err != nil || f.joined {
		t.Fatalf("inspect: %+v, %v, want no member", f, err)
	}
	n3 = w.start(t, "n3", port)
	members(t, n1, n2, n3)
}

// TestEnterRaced refuses to enter a server when the record is of another cluster than before.
func TestEnterRaced(t *testing.T) {
	r := Record{Cluster: "c2"}
	if err := enter(file{cluster: "c1", server: "s1"}, 1, "n1", "c1", false)(&r); !errors.Is(err, errChanged) {
		t.Errorf("enter: %v, want %v", err, errChanged)
	}
}

// TestConnections has the leader listen for clients, with the probe interval that docs/operate/high-availability.md
// names.
func TestConnections(t *testing.T) {
	w := newWorld(t)
	m := w.start(t, "n1", freePort(t))
	testkit.Eventually(t, "Connection", func() string {
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
