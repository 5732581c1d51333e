package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start("a shell", filepath.Join(t.TempDir(), "log"), "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// said waits until the process has written the text.
func said(t *testing.T, p *Process, text string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(p.Tail(), text); {
		if time.Now().After(end) {
			t.Fatalf("the process has written %q, want %q", p.Tail(), text)
		}
	}
}

func TestStop(t *testing.T) {
	p := start(t, "trap 'echo bye; exit' TERM; echo hello; while :; do sleep 0.01; done")
	said(t, p, "hello")
	if err := p.Stop(20 * time.Second); err != nil {
		t.Error(err)
	}
	said(t, p, "bye")
	if err := p.Stop(time.Second); err != nil {
		t.Errorf("stopping once more: %v", err)
	}
}

func TestStopOfWhatDoesNotListen(t *testing.T) {
	p := start(t, "trap '' TERM; echo hello; while :; do sleep 0.01; done")
	said(t, p, "hello")
	if err := p.Stop(50 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "still there") {
		t.Errorf("error %v, want one that says that SIGTERM was not enough", err)
	}
	select {
	case <-p.Done():
	default:
		t.Error("the process is still there")
	}
}

func TestUsage(t *testing.T) {
	u, err := UsageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if u.RSS < 1<<20 || u.Peak < u.RSS {
		t.Errorf("this process uses %d bytes, %d at most: want a megabyte or more", u.RSS, u.Peak)
	}
	precise, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if precise < u.CPU-2*tick || precise > u.CPU+time.Second {
		t.Errorf("the process's clock says %s, /proc/PID/stat %s", precise, u.CPU)
	}
	all, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	if all < u.CPU {
		t.Errorf("the machine has spent %s, less than this process alone, %s", all, u.CPU)
	}
}
