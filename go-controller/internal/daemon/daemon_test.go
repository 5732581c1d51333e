package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// With these environment variables, the test binary runs as the daemon.
const (
	roleEnv = "DAEMON_TEST_ROLE" // works, or fails before it does
	dirEnv  = "DAEMON_TEST_DIR"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(act(role, os.Getenv(dirEnv)))
	}
	os.Exit(m.Run())
}

func act(role, dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o := Options{Pidfile: filepath.Join(dir, "run", "d.pid"), LogFile: filepath.Join(dir, "log", "d.log"), Detach: true}
	err := Run(ctx, o, func(ctx context.Context, log io.Writer, ready func()) error {
		if role == "fails" {
			return errors.New("no bridge breth0")
		}
		fmt.Fprintln(log, "started")
		ready()
		fmt.Fprintln(os.Stderr, "to standard error")
		<-ctx.Done()
		fmt.Fprintln(log, "stopped")
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func run(t *testing.T, role, dir string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"="+role, dirEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The foreground process exits once the background process works. The pidfile names it and prevents a second one, and
// it exits on a signal.
func TestDetach(t *testing.T) {
	dir := t.TempDir()
	pidfile := filepath.Join(dir, "run", "d.pid")
	if err := os.MkdirAll(filepath.Dir(pidfile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pidfile, []byte("1\n"), 0o600); err != nil { // stale: another program has this number
		t.Fatal(err)
	}
	if out, err := run(t, "works", dir); err != nil || out != "" {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(pidfile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || pid <= 1 {
		t.Fatalf("the pidfile has %q", raw)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // gone already when the test passes
	if out, err := run(t, "works", dir); err == nil || !strings.Contains(out, fmt.Sprintf("process %d runs already",
		pid)) {
		t.Errorf("a second one: %v\n%s", err, out)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the daemon ends", func() string {
		if _, err := os.Stat(pidfile); err == nil {
			return "the pidfile is there"
		}
		return ""
	})
	testkit.Eventually(t, "its log", func() string {
		log, err := os.ReadFile(filepath.Join(dir, "log", "d.log"))
		if err != nil || string(log) != "started\nto standard error\nstopped\n" {
			return fmt.Sprint(string(log), err)
		}
		return ""
	})
}

func TestDetachTellsWhyItFailed(t *testing.T) {
	dir := t.TempDir()
	out, err := run(t, "fails", dir)
	if err == nil || !strings.Contains(out, "no bridge breth0") || strings.Count(out, "\n") > 2 {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "run", "d.pid")); err == nil {
		t.Error("the pidfile stays")
	}
}

func TestArgs(t *testing.T) {
	for line, want := range map[string]string{
		"watcher --overlay --pidfile --log-file -vfile:info -vconsole:emer --detach": "watcher --overlay " +
			"--pidfile=/var/run/ovn-kubernetes/x.pid --log-file=/var/log/ovn-kubernetes/x.log --verbose=file:info " +
			"--verbose=console:emer --detach",
		"w --pidfile=/p --log-file=/l -v -- --pidfile": "w --pidfile=/p --log-file=/l " +
			"--verbose=dbg -- --pidfile",
		"w --version -h":                     "w --version -h",
		"w --pidfile /p --log-file --detach": "w --pidfile=/p --log-file=/var/log/ovn-kubernetes/x.log --detach",
	} {
		if got := strings.Join(Args("x", strings.Fields(line)), " "); got != want {
			t.Errorf("%s:\n%s, want\n%s", line, got, want)
		}
	}
}

func TestLevels(t *testing.T) {
	for list, want := range map[string]Levels{
		"":                       {slog.LevelInfo, slog.LevelInfo},
		"file:info console:emer": {slog.LevelInfo, slog.LevelError + 4},
		"dbg console:off":        {slog.LevelDebug, Off},
		"syslog:err any:warn":    {slog.LevelWarn, slog.LevelWarn},
		"off file:err":           {slog.LevelError, Off},
	} {
		if got, err := ParseLevels(strings.Fields(list)); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", list, got, err, want)
		}
	}
	for list, want := range map[string]string{
		"loud":      `-vloud: level "loud": want off, emer, err, warn, info or dbg`,
		"tape:info": `-vtape:info: destination "tape": want file, console, syslog or any`,
	} {
		if _, err := ParseLevels(slices.Clone(strings.Fields(list))); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
}
