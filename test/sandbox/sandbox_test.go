package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/sandbox"
)

// traces lists everything that is left of a sandbox on this machine.
func traces(t *testing.T, stateRoot, name string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{
		filepath.Join(stateRoot, name), "/sys/fs/cgroup/northbound-" + name + "-*", "/sys/fs/cgroup/*/northbound-" + name +
			"-*",
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, paths...)
	}
	state := filepath.Join(stateRoot, name) + "/"
	for _, file := range globbed(t, "/proc/[0-9]*/cmdline") {
		b, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(b), state) {
			found = append(found, file+": "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), state) {
		found = append(found, "a mount below "+state)
	}
	return found
}

func globbed(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// options returns options for a sandbox that is removed when the test ends.
func options(t *testing.T, name string) sandbox.Options {
	t.Helper()
	// The path of a socket must be short, and t.TempDir's is long.
	root, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	o := sandbox.Options{Name: name, StateRoot: root, NoNodes: true, DualStack: true, Progress: os.Stderr}
	t.Cleanup(func() {
		if err := sandbox.Down(context.Background(), root, name); err != nil {
			t.Error(err)
		}
		if found := traces(t, root, name); len(found) > 0 {
			t.Errorf("left behind: %v", found)
		}
		if err := os.Remove(root); err != nil && !errors.Is(err, os.ErrNotExist) { // Down removes it with the last sandbox
			t.Error(err)
		}
	})
	return o
}

func up(t *testing.T, o sandbox.Options) *sandbox.Cluster {
	t.Helper()
	c, err := sandbox.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSideBySide checks that two sandboxes exist at the same time, each with an API server and databases of its own.
func TestSideBySide(t *testing.T) {
	one, two := up(t, options(t, "test-one")), up(t, options(t, "test-two"))
	if _, err := one.NBCtl(t.Context(), "ls-add", "only-in-one"); err != nil {
		t.Fatal(err)
	}
	for c, want := range map[*sandbox.Cluster]string{one: "only-in-one", two: ""} {
		out, err := c.NBCtl(t.Context(), "--bare", "--columns=name", "list", "Logical_Switch")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out); got != want {
			t.Errorf("switches of %s: %q, want %q", c.Options.Name, got, want)
		}
		client, err := c.Control.Client()
		if err != nil {
			t.Fatal(err)
		}
		svc, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := svc.Spec.ClusterIP; got != "10.96.0.1" {
			t.Errorf("kubernetes service of %s: %s, want 10.96.0.1", c.Options.Name, got)
		}
		if !sandbox.Healthy(c.Status(t.Context())) {
			t.Errorf("%s: %v", c.Options.Name, c.Status(t.Context()))
		}
	}
}

// TestUpTwice checks that Up does not overwrite a running sandbox, and replaces one that was killed.
func TestUpTwice(t *testing.T) {
	o := options(t, "test-twice")
	c := up(t, o)
	if _, err := sandbox.Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is up already") {
		t.Fatalf("a second Up: %v, want that it is up already", err)
	}
	if err := syscall.Kill(c.Control.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, c)
	if sandbox.Healthy(c.Status(t.Context())) {
		t.Error("a sandbox without a control machine counts as healthy")
	}
	up(t, o)
}

func gone(t *testing.T, c *sandbox.Cluster) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); c.Control.PID() != 0; {
		if time.Now().After(end) {
			t.Fatal("the control machine didn't end")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestInterrupted checks that an interrupted Up removes everything that it made, at any moment.
func TestInterrupted(t *testing.T) {
	for _, after := range []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond, time.Second} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			o := options(t, "test-cut")
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			if _, err := sandbox.Up(ctx, o); err == nil {
				t.Fatal("it came up before it was interrupted")
			}
			if found := traces(t, o.StateRoot, o.Name); len(found) > 0 {
				t.Errorf("left behind: %v", found)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]sandbox.Options{
		"name":              {Name: "Not A Name"},
		"nodes":             {Nodes: 1000},
		"OVN from":          {OVN: "elsewhere"},
		"state directory":   {StateRoot: "relative"},
		"make sandbox":      {BinDir: "/nonexistent"},
		"install \"magic\"": {Install: "magic"},
		"install manifest":  {Install: sandbox.InstallManifest, HA: true},
	} {
		if _, err := sandbox.Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Up(%+v): %v, want an error about %s", o, err, want)
		}
	}
}

// TestProvide checks that the environment chooses another OVN if the options do not, and that the provided system
// reports its versions.
func TestProvide(t *testing.T) {
	t.Setenv(sandbox.OVNVariable, "elsewhere")
	if _, err := sandbox.Provide(t.Context(), sandbox.Options{}); err == nil || !strings.Contains(err.Error(),
		`OVN from "elsewhere"`) {
		t.Errorf("OVN from elsewhere, as the environment says: %v, want an error", err)
	}
	s, err := sandbox.Provide(t.Context(), sandbox.Options{OVN: sandbox.OVNRootfs, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.OVN, ".") || !strings.Contains(s.OpenVSwitch, ".") {
		t.Errorf("versions %+v, want those of OVN and Open vSwitch", s)
	}
}
