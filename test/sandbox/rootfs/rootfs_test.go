package rootfs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/progress"
)

// TestInterrupted holds that a root filesystem that was interrupted is not taken
// for a finished one, and that nothing of it stays.
func TestInterrupted(t *testing.T) {
	cache := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { // interrupt it as soon as it has begun to write
		for ctx.Err() == nil {
			if begun, _ := filepath.Glob(filepath.Join(cache, "*.partial", "debootstrap", "*")); len(begun) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	var out bytes.Buffer
	dir, err := Ensure(ctx, cache, progress.New(&out))
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

// TestLock holds that waiting for another's work ends with the context.
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

// TestSource holds that this machine's mirror is found.
func TestSource(t *testing.T) {
	mirror, r, err := source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(mirror, "://") || r.suite == "" {
		t.Errorf("mirror %q, release %+v", mirror, r)
	}
}
