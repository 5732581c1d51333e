package dbserver

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// daemons are one machine's two servers and its ovn-northd.
type daemons struct {
	Member
	keepers   map[string]*keeper
	northd    func() (kill func()) // starts it as the chart does: paused
	endNorthd func()
}

// startDaemons starts both servers, and then ovn-northd as the chart does.
func startDaemons(t *testing.T) *daemons {
	t.Helper()
	w := newWorld(t)
	dir := filepath.Join(w.dir, "n1")
	d := &daemons{keepers: map[string]*keeper{}, Member: Member{Node: "n1", Listen: "127.0.0.1", Cluster: w,
		Log: slog.New(slog.DiscardHandler), Metrics: metrics.NewDatabase(prometheus.NewRegistry()),
		Layout: Layout{Files: filepath.Join(dir, "files"), Run: filepath.Join(dir, "run"), Schemas: "/usr/share/ovn",
			Certificates: filepath.Join(dir, "certificates")}}}
	for _, db := range Databases() {
		d.serve(t, db)
		d.keepers[db.Short] = &keeper{Member: d.Member, d: db, log: d.Log}
	}
	args := []string{"--no-chdir", "-vconsole:off", "-vfile:off", "--unixctl=" + d.Layout.northd(),
		"--ovnnb-db=unix:" + d.Layout.Socket(Databases()[0]), "--ovnsb-db=unix:" + d.Layout.Socket(Databases()[1])}
	d.northd = func() (kill func()) {
		if err := os.WriteFile(d.Layout.onHold(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return run(t, exec.Command("ovn-northd", append(args, "--dry-run")...))
	}
	d.endNorthd = d.northd()
	return d
}

// serve makes a database's file and starts its server. The function that it returns kills that.
func (d *daemons) serve(t *testing.T, db Database) (kill func()) {
	t.Helper()
	if err := d.Prepare(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	argv := d.ServerArgs(db)
	for i, a := range argv {
		if strings.HasPrefix(a, "--remote=db:") { // it would listen on the machine's own port
			argv[i] = "--remote=punix:" + d.Layout.Socket(db) + ".more"
		}
	}
	return run(t, exec.Command(argv[0], argv[1:]...))
}

// run starts a program, which ends with the test at the latest.
func run(t *testing.T, cmd *exec.Cmd) (kill func()) {
	t.Helper()
	cmd.Env = append(os.Environ(), (Member{}).ServerEnv()...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // the signal is its error
	}
	t.Cleanup(kill)
	return kill
}

// tick has both keepers work until neither fails, and tells what they wait for.
func (d *daemons) tick(t *testing.T) (waits string) {
	t.Helper()
	testkit.Eventually(t, "both keepers", func() string {
		waits = ""
		for _, db := range Databases() {
			k := d.keepers[db.Short]
			if err := k.tick(t.Context()); err != nil {
				return err.Error()
			}
			if k.waits {
				waits += db.Short + " "
			}
		}
		return ""
	})
	return waits
}

func (d *daemons) ctl(t *testing.T, short string, args ...string) string {
	t.Helper()
	db, err := ByName(short)
	if err != nil {
		t.Fatal(err)
	}
	out, err := output(t.Context(), "ovn-"+short+"ctl",
		append([]string{"--db=unix:" + d.Layout.Socket(db), "--timeout=20"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// fill does what the master does, and waits until nothing waits any more.
func (d *daemons) fill(t *testing.T) {
	t.Helper()
	d.ctl(t, "nb", "ls-add", "s1", "--", "set", "NB_Global", ".", "nb_cfg=1")
	testkit.Eventually(t, "nothing waits", func() string { return d.tick(t) })
	if have := d.ctl(t, "sb", "get-connection"); !strings.Contains(have, "pssl:6642") {
		t.Errorf("the Southbound server listens on %q", have)
	}
	d.northdIs(t, "active")
}

func (d *daemons) northdIs(t *testing.T, want string) {
	t.Helper()
	testkit.Eventually(t, "ovn-northd is "+want, func() string {
		out, err := output(t.Context(), "ovs-appctl", "--timeout=5", "-t", d.Layout.northd(), "status")
		if err != nil || !strings.Contains(out, want) {
			return fmt.Sprint(out, err)
		}
		return ""
	})
}

// An empty database is not served before it is filled: not a new one, and not one whose file was lost.
func TestEmptyDatabasesWait(t *testing.T) {
	d := startDaemons(t)
	if waits := d.tick(t); waits != "nb sb " {
		t.Fatalf("new databases: %q wait, want both", waits)
	}
	d.northdIs(t, "paused")
	if have := d.ctl(t, "sb", "get-connection"); have != "" {
		t.Errorf("the empty Southbound server listens on %q", have)
	}
	if have := d.ctl(t, "nb", "get-connection"); !strings.Contains(have, "pssl:6641") {
		t.Errorf("the Northbound server listens on %q: want it to, since the master fills it", have)
	}
	d.fill(t)
	if have := d.datapaths(t); len(have) != 1 || have[0] != "s1" {
		t.Errorf("the Southbound database was opened with the datapaths %q, want s1", have)
	}
	d.lose(t, "nb")
	before := d.datapaths(t)
	if waits := d.tick(t); waits != "nb " {
		t.Fatalf("a lost Northbound database: %q wait, want nb", waits)
	}
	d.northdIs(t, "paused")
	d.endNorthd() // such as with its pod: the next one must wait, too
	d.endNorthd = d.northd()
	if waits := d.tick(t); waits != "nb " {
		t.Fatalf("a lost Northbound database, and a new ovn-northd: %q wait, want nb", waits)
	}
	d.northdIs(t, "paused")
	d.fill(t)
	if after := d.datapaths(t); !slices.Equal(before, after) {
		t.Errorf("the datapaths were %q, and are %q", before, after)
	}
	if _, err := output(t.Context(), "ovs-appctl", "--timeout=5", "-t", d.Layout.northd(), "pause"); err != nil {
		t.Fatal(err)
	}
	d.tick(t)
	d.northdIs(t, "paused") // an operator's pause stays
	if _, err := output(t.Context(), "ovs-appctl", "--timeout=5", "-t", d.Layout.northd(), "resume"); err != nil {
		t.Fatal(err)
	}
	d.lose(t, "sb")
	d.northdIs(t, "paused") // it remembers a Northbound database that may be lost, too
	testkit.Eventually(t, "a lost Southbound database is filled and served", func() string { return d.tick(t) })
	if have := d.ctl(t, "sb", "get-connection"); !strings.Contains(have, "pssl:6642") {
		t.Errorf("the new Southbound server listens on %q", have)
	}
}

// datapaths are the names of the switches in the Southbound database.
func (d *daemons) datapaths(t *testing.T) []string {
	t.Helper()
	var names []string
	out := d.ctl(t, "sb", "--bare", "--columns=external_ids", "list", "Datapath_Binding")
	for _, pair := range strings.Fields(out) {
		if name, ok := strings.CutPrefix(pair, "name="); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// lose ends a server, deletes its file, and starts it again.
func (d *daemons) lose(t *testing.T, short string) {
	t.Helper()
	db, err := ByName(short)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := output(context.WithoutCancel(t.Context()), "ovs-appctl", "--timeout=10", "-t", d.Layout.Control(db),
		"exit"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the server's end", func() string {
		if _, err := os.Stat(d.Layout.Control(db)); err == nil {
			return "its control socket is still there"
		}
		return ""
	})
	if err := os.Remove(d.Layout.File(db)); err != nil {
		t.Fatal(err)
	}
	d.serve(t, db)
}
