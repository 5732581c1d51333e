package cgroup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestMemory has the kernel kill a process that wants more than its group may have.
func TestMemory(t *testing.T) {
	m, err := NewMemory(fmt.Sprintf("northbound-test-memory-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := m.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := m.Limit(32 << 20); err != nil {
		t.Fatal(err)
	}
	// dd fills a buffer of that size.
	script := fmt.Sprintf("echo 0 >%s && exec dd if=/dev/zero of=/dev/null bs=200M count=1", m.Procs())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "/bin/sh", "-c", script).Output(); err == nil {
		t.Errorf("the process has ended well: %d bytes", len(out))
	}
	killed, err := m.Killed()
	if err != nil || killed != 1 {
		t.Errorf("%d processes were killed, %v, want 1", killed, err)
	}
	if peak, err := m.Peak(); err != nil || peak < 16<<20 || peak > 32<<20 {
		t.Errorf("%d bytes at most, %v, want nearly 32 MiB", peak, err)
	}
}
