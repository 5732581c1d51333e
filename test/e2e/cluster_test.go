package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	testbed "github.com/northbound-net/northbound/test/sandbox"
)

const (
	name     = "e2e"            // of the sandbox
	deadline = 3 * time.Minute  // of every wait
	upLimit  = 15 * time.Minute // for starting the cluster, which may download and build
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run is TestMain with defers.
func run(m *testing.M) int {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM) // until the process exits
	// Remove leftovers of an earlier run first, and those of this run at the end.
	if out, err := sandbox(context.Background(), "down"); err != nil {
		fmt.Fprintf(os.Stderr, "removing an earlier sandbox: %v\n%s", err, out)
		return 1
	}
	down := sync.OnceFunc(func() {
		if out, err := sandbox(context.Background(), "down"); err != nil {
			fmt.Fprintf(os.Stderr, "removing the sandbox: %v\n%s", err, out)
		}
	})
	defer down()
	upCtx, cancel := context.WithTimeout(ctx, upLimit)
	defer cancel()
	up := command(upCtx, "up", "--nodes", "3", "--dual-stack", "--audit")
	up.Stdout, up.Stderr = os.Stdout, os.Stderr
	if err := up.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "bringing the sandbox up: %v\n", err)
		return 1
	}
	go func() { // tests do not notice the interrupt
		<-ctx.Done()
		down()
		os.Exit(1)
	}()
	code := m.Run()
	if err := checkRights(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// checkRights returns an error if ovnkube asked the API server for what its roles do not give.
func checkRights() error {
	c, err := testbed.Open(testbed.DefaultStateRoot, name)
	if err != nil {
		return fmt.Errorf("opening the sandbox: %w", err)
	}
	return machines.CheckRights(c)
}

// command returns a command of bin/sandbox for the cluster of these tests.
func command(ctx context.Context, args ...string) *exec.Cmd {
	bin, err := filepath.Abs("../../bin/sandbox")
	if err != nil {
		bin = "../../bin/sandbox"
	}
	cmd := exec.CommandContext(ctx, bin, append([]string{"--name", name}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// sandbox runs bin/sandbox to its end and returns its output.
func sandbox(ctx context.Context, args ...string) (string, error) {
	out, err := command(ctx, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("sandbox %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// must is like sandbox, but ends the test on an error.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := sandbox(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return must(t, append([]string{"kubectl"}, args...)...)
}

func nbctl(t *testing.T, args ...string) string {
	t.Helper()
	return must(t, append([]string{"nbctl"}, args...)...)
}

// onChart tells whether the sandbox's databases, masters and agents are pods of the chart.
func onChart() bool { return testbed.Options{Install: os.Getenv(testbed.InstallVariable)}.RunsChart() }

// inMaster returns what ovnkube prints where the master runs, with the rights and the Northbound database of its own.
func inMaster(t *testing.T, args ...string) string {
	t.Helper()
	return must(t, append([]string{"ovnkube"}, args...)...)
}

// eventually waits until ok returns "", or fails with what it returned last.
func eventually(t *testing.T, what string, ok func() string) {
	t.Helper()
	machines.Within(t, deadline, what, func(context.Context) string { return ok() })
}

// apply applies a manifest and removes its objects when the test ends.
func apply(t *testing.T, manifest string) {
	t.Helper()
	applyStdin(t, manifest)
	t.Cleanup(func() {
		cmd := command(context.Background(), "kubectl", "delete", "--ignore-not-found", "--wait=false", "-f", "-")
		cmd.Stdin = strings.NewReader(manifest)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("deleting the test's objects: %v\n%s", err, out)
		}
	})
}

func applyStdin(t *testing.T, manifest string) {
	t.Helper()
	cmd := command(t.Context(), "kubectl", "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("applying: %v\n%s", err, out)
	}
}

// pod has the properties of a pod that the tests need.
type pod struct {
	Name, Node string
	IPs        []string // from the annotation, without prefix lengths
	MAC        string
}

// pods lists the ready pods with a label, sorted by name. others are pods that are not ready or are being deleted.
func pods(t *testing.T, app string) (out []pod, others int) {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct {
				Name              string
				DeletionTimestamp *string
				Annotations       map[string]string
			}
			Spec   struct{ NodeName string }
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := json.Unmarshal([]byte(kubectl(t, "get", "pods", "-l", "app="+app, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, i := range list.Items {
		ready := slices.ContainsFunc(i.Status.Conditions, func(c struct{ Type, Status string }) bool {
			return c.Type == "Ready" && c.Status == "True"
		})
		if !ready || i.Metadata.DeletionTimestamp != nil {
			others++
			continue
		}
		p := pod{Name: i.Metadata.Name, Node: i.Spec.NodeName}
		var nets map[string]struct {
			IPs []string `json:"ip_addresses"`
			MAC string   `json:"mac_address"`
		}
		if err := json.Unmarshal([]byte(i.Metadata.Annotations["k8s.ovn.org/pod-networks"]), &nets); err != nil {
			t.Fatalf("pod %s: annotation: %v", p.Name, err)
		}
		p.MAC = nets["default"].MAC
		for _, ip := range nets["default"].IPs {
			addr, _, _ := strings.Cut(ip, "/")
			p.IPs = append(p.IPs, addr)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b pod) int { return strings.Compare(a.Name, b.Name) })
	return out, others
}

// readyPods waits until n pods with a label are ready and no other is being deleted: a pod may answer until its kubelet
// has ended it.
func readyPods(t *testing.T, app string, n int) []pod {
	t.Helper()
	var out []pod
	eventually(t, fmt.Sprintf("%d ready pods of %s", n, app), func() string {
		others := 0
		if out, others = pods(t, app); len(out) != n || others != 0 {
			return fmt.Sprintf("%d are, and %d others", len(out), others)
		}
		return ""
	})
	return out
}

// metric returns the sum over all labels of a metric of the master.
func metric(t *testing.T, name string) float64 {
	t.Helper()
	var sum float64
	for line := range strings.Lines(must(t, "metrics")) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		base, _, _ := strings.Cut(series, "{")
		if !ok || base != name {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(value, &v); err != nil {
			t.Fatalf("metric %s: %v", line, err)
		}
		sum += v
	}
	return sum
}
