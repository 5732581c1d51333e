package nicmove_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// cgroupEnv has the name of the test's cgroup.
const cgroupEnv = "NORTHBOUND_TEST_CGROUP"

// A move whose whole cgroup is killed is rolled back: the watchdog has left the cgroup.
func TestCgroupKilled(t *testing.T) {
	if os.Getenv(cgroupEnv) == "" {
		name := fmt.Sprintf("northbound-test-%d", os.Getpid())
		t.Setenv(cgroupEnv, name)
		t.Cleanup(func() { removeCgroups(t, name) })
	}
	if !testkit.Isolated(t) {
		return
	}
	setUp(t, rich)
	before := dump(t, "eth0")
	roots := mountCgroups(t)
	c := forward()
	for _, step := range []int{2, 20} {
		for _, root := range roots {
			if err := os.MkdirAll(filepath.Join(root, os.Getenv(cgroupEnv)), 0o755); err != nil {
				t.Fatal(err)
			}
			join(t, filepath.Join(root, os.Getenv(cgroupEnv)))
		}
		cmd, more := runTo(t, c, step, 0)
		if !more {
			t.Fatalf("the move has fewer than %d steps", step)
		}
		for _, root := range roots {
			join(t, root)
		}
		for _, root := range roots {
			killAll(t, filepath.Join(root, os.Getenv(cgroupEnv)))
		}
		_ = cmd.Wait() // it was killed
		awaitTakeOver(t)
		testkit.Eventually(t, "the kernel to forget the bridge's interface", func() string { return ghosts(t) })
		same(t, fmt.Sprintf("killed before step %d: eth0", step), dump(t, "eth0"), before)
		clean(t)
	}
	reachable(t)
}

// mountCgroups mounts version 2, and that of version 1 which systemd uses, if this machine has it.
func mountCgroups(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var roots []string
	for line, mount := range map[string][2]string{
		"0::": {"cgroup2", ""}, ":name=systemd:": {"cgroup", "none,name=systemd"},
	} {
		if !strings.Contains(string(text), line) {
			continue
		}
		root := "/run/" + mount[0]
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("cgroup", root, mount[0], 0, mount[1]); err != nil {
			t.Fatalf("mounting %s: %v", mount[0], err)
		}
		roots = append(roots, root)
	}
	if len(roots) == 0 {
		t.Fatalf("this kernel has neither version 2 nor systemd's hierarchy: %s", text)
	}
	return roots
}

// join moves this process, and what it will start, to a cgroup.
func join(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		t.Fatal(err)
	}
}

// killAll kills a cgroup's processes until it has none, as systemd does.
func killAll(t *testing.T, dir string) {
	t.Helper()
	testkit.Eventually(t, "the end of all processes of "+dir, func() string {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		for pid := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(pid); err == nil && n > 1 {
				_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended
			}
		}
		return string(text)
	})
}

// removeCgroups removes the test's cgroups, in which nothing runs any more.
func removeCgroups(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if !strings.Contains(lines.Text(), " - cgroup") {
			continue
		}
		dir := filepath.Join(strings.Fields(lines.Text())[4], name)
		testkit.Eventually(t, dir+" is removed", func() string {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err.Error()
			}
			return ""
		})
	}
}
