package limits

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// write makes files below a new directory, whose name stands for DIR in their contents.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The least limit counts: of the process's own group, or of one around it, as far as they are mounted.
func TestGroupLimit(t *testing.T) {
	const v2 = "30 23 0:26 / DIR/v2 rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	const v1 = "31 23 0:27 / DIR/v1 rw,nosuid - cgroup cgroup rw,memory\n" +
		"32 23 0:28 / DIR/cpu rw,nosuid - cgroup cgroup rw,cpu\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"version 2": {map[string]string{"mountinfo": v2, "cgroup": "0::/a/b\n", "v2/a/b/memory.max": "2000\n",
			"v2/a/memory.max": "max\n"}, 2000},
		"version 2, the group around it": {map[string]string{"mountinfo": v2, "cgroup": "0::/a/b\n",
			"v2/a/b/memory.max": "2000\n", "v2/a/memory.max": "1000\n"}, 1000},
		"version 2, in a container": {map[string]string{"mountinfo": v2, "cgroup": "0::/\n",
			"v2/memory.max": "3000\n"}, 3000},
		"version 2, no limit": {map[string]string{"mountinfo": v2, "cgroup": "0::/a\n", "v2/a/memory.max": "max\n"},
			math.MaxInt64},
		"version 1": {map[string]string{"mountinfo": v1, "cgroup": "4:memory:/a\n3:cpu:/c\n0::/\n",
			"v1/a/memory.limit_in_bytes": "4000\n", "v1/memory.limit_in_bytes": "9223372036854771712\n"}, 4000},
		"version 1, in a container that sees the host's paths": {map[string]string{
			"mountinfo": strings.Replace(v1, " / ", " /pods/a ", 1), "cgroup": "4:cpu,memory:/pods/a\n",
			"v1/memory.limit_in_bytes": "5000\n"}, 5000},
		"nothing is mounted": {map[string]string{"mountinfo": "", "cgroup": "0::/a\n"}, math.MaxInt64},
		"no control groups":  {nil, math.MaxInt64},
	} {
		if got, ok := ownGroup(write(t, c.files)).limit(); !ok || got != c.want {
			t.Errorf("%s: %d, %v, want %d", name, got, ok, c.want)
		}
	}
	if _, ok := (group{"/nonexistent"}).limit(); ok {
		t.Error("a limit that cannot be read is one")
	}
}

func TestChanged(t *testing.T) {
	var s state
	for i, c := range []struct{ used, limit, want uint64 }{
		{89, 100, same}, {90, 100, shorter}, {95, 100, same}, {81, 100, same}, {79, 100, longer}, {10, 0, same},
		{10, math.MaxInt64, same}, {17, 20, same}, {18, 20, shorter}, {18, 1000, longer},
		{math.MaxInt64, math.MaxInt64, shorter},
	} {
		if got := s.changed(c.used, c.limit, 90); uint64(got) != c.want {
			t.Errorf("step %d, %d of %d: %d, want %d", i, c.used, c.limit, got, c.want)
		}
	}
}

// newTest returns a keeper with the limit of a file, and what it logs.
func newTest(t *testing.T) (k *keeper, file string, logged *bytes.Buffer) {
	t.Helper()
	logged = &bytes.Buffer{}
	k = newKeeper(slog.New(slog.NewTextHandler(logged, nil)))
	t.Cleanup(k.close)
	file = filepath.Join(t.TempDir(), "memory.max")
	k.group = group{file}
	return k, file, logged
}

// The Go runtime follows the group's limit, also one that changes. Objects that fill it are reported once.
func TestMemory(t *testing.T) {
	k, file, logged := newTest(t)
	set := func(limit string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(limit), 0o600); err != nil {
			t.Fatal(err)
		}
		k.look()
	}
	set("1000000000\n")
	if got := debug.SetMemoryLimit(-1); got != 900000000 {
		t.Errorf("the runtime's limit is %d, want 900000000", got)
	}
	live := bytes.Repeat([]byte("x"), 40<<20)
	runtime.GC()
	set("50000000\n")
	k.look()
	if got := strings.Count(logged.String(), "memory is short"); got != 1 {
		t.Errorf("%d lines say that memory is short, want one:\n%s", got, logged)
	}
	runtime.KeepAlive(live)
	set("max\n")
	k.look()
	for _, want := range []string{"memory is not limited any more", "memory is not short any more"} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("no line %q:\n%s", want, logged)
		}
	}
}

// Where the operator has set GOMEMLIMIT, it stays.
func TestMemoryOfTheOperator(t *testing.T) {
	was := debug.SetMemoryLimit(3 << 30)
	t.Cleanup(func() { debug.SetMemoryLimit(was) })
	k, file, _ := newTest(t)
	if err := os.WriteFile(file, []byte("1000000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.look()
	if got := debug.SetMemoryLimit(-1); got != 3<<30 {
		t.Errorf("the runtime's limit is %d, want what it was", got)
	}
}

// Open files are counted when no more can be opened, too.
func TestOpenFiles(t *testing.T) {
	k, _, logged := newTest(t)
	was, restore := testkit.OpenFiles(t)
	defer restore()
	k.look()
	if logged.Len() > 0 {
		t.Errorf("nothing is short, but:\n%s", logged)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	k.look()
	if _, err := os.Open("/dev/null"); err == nil {
		t.Error("a file could be opened")
	}
	restore()
	k.look()
	if got := logged.String(); strings.Count(got, "open files are short") != 1 || !strings.Contains(got, "limit=3\n") ||
		strings.Count(got, "not short any more") != 1 {
		t.Errorf("it was logged:\n%s", got)
	}
}

func TestKeepEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	Keep(ctx, slog.New(slog.DiscardHandler))
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("afterwards the runtime's limit is %d", got)
	}
}
