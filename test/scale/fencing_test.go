package scale

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// lease is the duration of the Lease of leader election.
const lease = 5 * time.Second

// candidate starts one of two masters.
func (b *bed) candidate(ctx context.Context, addr string) *rig.Master {
	b.Helper()
	m, err := b.StartMasterAt(ctx, addr, "--leader-elect-lease", lease.String())
	b.must(err)
	b.Cleanup(func() {
		select {
		case <-m.Done():
		default:
			b.must(m.Kill())
		}
	})
	_, err = m.WaitReady(ctx)
	b.must(err)
	return m
}

// leader is the number and the identity that the cluster router records.
func (b *bed) leader() string {
	b.Helper()
	return strings.Join(strings.Fields(b.nbctl("get", "logical_router", "ovn_cluster_router",
		`external_ids:"k8s.ovn.org/leader-epoch"`, `external_ids:"k8s.ovn.org/leader"`)), " ")
}

// versions is the version of each pod and node: any patch changes it.
func (b *bed) versions(ctx context.Context) map[string]string {
	b.Helper()
	out := map[string]string{}
	pods, err := b.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	b.must(err)
	for i := range pods.Items {
		out["pod "+pods.Items[i].Name] = pods.Items[i].ResourceVersion
	}
	nodes, err := b.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	b.must(err)
	for i := range nodes.Items {
		out["node "+nodes.Items[i].Name] = nodes.Items[i].ResourceVersion
	}
	return out
}

// transactions is how many the database has recorded.
func (b *bed) transactions() int {
	b.Helper()
	n, err := b.NB.Log.Records()
	b.must(err)
	return n
}

// A leader that is stopped, and continues when another leads, writes nothing to the database or to Kubernetes, and ends
// with an error.
func TestStoppedLeader(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	b := newBed(t)
	old := b.candidate(ctx, "127.0.0.1:9409")
	next := b.candidate(ctx, "127.0.0.1:9410")
	b.create(ctx, 0, 50)
	b.networked(ctx, 50)
	before := b.leader()
	b.must(old.Signal(syscall.SIGSTOP))
	stopped := time.Now()
	b.create(ctx, 50, 100) // the old leader hears of these when it continues
	now := metav1.NewDeleteOptions(0)
	for i := range 10 {
		b.must(b.Kube.CoreV1().Pods(namespace).Delete(ctx, load.PodName(i), *now))
	}
	for b.leader() == before {
		if ctx.Err() != nil {
			t.Fatalf("nobody else leads: %s", next.Tail())
		}
	}
	t.Logf("%s after the leader was stopped, another leads", time.Since(stopped).Round(10*time.Millisecond))
	_, err := next.WaitReady(ctx)
	b.must(err)
	b.networked(ctx, 100)
	written, versions := b.transactions(), b.versions(ctx)
	b.must(old.Signal(syscall.SIGCONT))
	continued := time.Now()
	select {
	case <-old.Done():
	case <-ctx.Done():
		t.Fatalf("the old leader still runs: %s", old.Tail())
	}
	t.Logf("the old leader ended %s after it continued: %s", time.Since(continued).Round(time.Millisecond), old.Tail())
	if code := old.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if n := b.transactions(); n != written {
		t.Errorf("%d transactions after the old leader continued, want none", n-written)
	}
	if now := b.versions(ctx); !maps.Equal(now, versions) {
		t.Errorf("pods or nodes were patched: %s", difference(versions, now))
	}
}

// difference names what differs.
func difference(was, is map[string]string) (out []string) {
	for k := range is {
		if was[k] != is[k] {
			out = append(out, fmt.Sprintf("%s %s->%s", k, was[k], is[k]))
		}
	}
	return out
}
