package cgroup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMakeAndRemove makes a group and puts a process into a child group. Remove succeeds only after the process has
// ended.
func TestMakeAndRemove(t *testing.T) {
	name := fmt.Sprintf("northbound-test-%d", os.Getpid())
	if err := Make(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Remove(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	all, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("this machine has no control groups")
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() })
	for _, h := range all {
		below := filepath.Join(h.dir, name, "below")
		if err := os.Mkdir(below, 0o755); err != nil {
			t.Fatal(err)
		}
		if h.version == 1 {
			if err := inherit(filepath.Dir(below), below); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(below, "cgroup.procs"), fmt.Append(nil, child.Process.Pid), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := Remove(ctx, name); err == nil {
		t.Error("a group with a process in it was removed")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Error("the killed process says that it ended well")
	}
	if err := Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		if _, err := os.Stat(filepath.Join(h.dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s/%s: %v, want that it is gone", h.dir, name, err)
		}
	}
}
