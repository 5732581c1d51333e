package rootfs

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/progress"
)

// TestInterrupted checks that an interrupted root filesystem does not count as finished, and is removed.
func TestInterrupted(t *testing.T) {
	cache := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { // interrupt it as soon as it has started to write
		for ctx.Err() == nil {
			if begun, _ := filepath.Glob(filepath.Join(cache, "*.partial", "debootstrap", "*")); len(begun) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	var out bytes.Buffer
	dir, err := Ensure(ctx, cache, Tested, progress.New(&out))
	if err == nil {
		t.Fatalf("a root filesystem was made although it was interrupted: %s", dir)
	}
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "rootfs.lock" {
			t.Errorf("left behind: %s", e.Name())
		}
	}
	if !strings.Contains(out.String(), "not done") {
		t.Errorf("progress says %q, want that it is not done", out.String())
	}
}

// TestLock checks that waiting for the lock ends with the context.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: %v, want a deadline", err)
	}
	unlock()
	unlock, err = lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// TestSource checks that this machine's mirror is found, with a release of each choice or an error that says why there
// is none.
func TestSource(t *testing.T) {
	for _, choice := range []Choice{Tested, Newest} {
		r, err := source(t.Context(), choice)
		if choice == Newest && err != nil && strings.Contains(err.Error(), "have no newer OVN than that of Ubuntu") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.mirror, "://") || r.suite == "" || len(r.packages) == 0 {
			t.Errorf("choice %d: release %+v, want one with a mirror and packages", choice, r)
		}
	}
}

// TestOverride checks that a mirror in the environment is used, as one of Debian.
func TestOverride(t *testing.T) {
	const mirror = "http://mirror.example/debian"
	t.Setenv(MirrorVariable, mirror)
	for choice, suite := range map[Choice]string{Tested: "trixie", Newest: "sid"} {
		r, err := source(t.Context(), choice)
		if err != nil || r.mirror != mirror || r.suite != suite {
			t.Errorf("choice %d: %+v, %v, want %s of %s", choice, r, err, suite, mirror)
		}
	}
}

// TestAhead checks that a mirror without the suite ahead has nothing newer, and that a mirror that fails is an error.
func TestAhead(t *testing.T) {
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/debian/dists/experimental/InRelease":
		case "/broken/dists/experimental/InRelease":
			http.Error(w, "full", http.StatusServiceUnavailable)
		default:
			http.NotFound(w, r)
		}
	}))
	defer mirror.Close()
	for url, want := range map[string]bool{mirror.URL + "/debian": true, mirror.URL + "/debian/": true, mirror.URL +
		"/old": false, "file:///srv/debian": false} {
		if have, err := (release{mirror: url, ahead: "experimental"}).hasAhead(t.Context()); err != nil || have != want {
			t.Errorf("%s has it: %v, %v, want %v", url, have, err, want)
		}
	}
	if _, err := (release{mirror: mirror.URL + "/broken", ahead: "experimental"}).hasAhead(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "503") {
		t.Errorf("a mirror that fails: %v", err)
	}
	if have, err := (release{mirror: mirror.URL + "/debian"}).hasAhead(t.Context()); have || err != nil {
		t.Errorf("none is asked for: %v, %v", have, err)
	}
}

// TestVersion asks dpkg of this system for its own version.
func TestVersion(t *testing.T) {
	have, err := Version(t.Context(), "/", "dpkg")
	if err != nil || !strings.HasPrefix(have, "1.") {
		t.Errorf("version of dpkg: %q, %v, want 1.something", have, err)
	}
	if _, err := Version(t.Context(), "/", "no-such-package"); err == nil || !strings.Contains(err.Error(),
		"no-such-package") {
		t.Errorf("version of a package that isn't there: %v, want an error that names it", err)
	}
}
