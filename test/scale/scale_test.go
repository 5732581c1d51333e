package scale

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/netns"
	"github.com/northbound-net/northbound/test/scale/rig"
)

const (
	nodes     = 20
	waiting   = 300 // pods that exist before the master
	more      = 200 // pods that are created while it runs
	services  = 50
	namespace = "scale"
	bin       = "../../bin"
	ovnkube   = bin + "/ovnkube"
	deadline  = 3 * time.Minute // of the whole test, which takes about ten seconds
)

func TestMain(m *testing.M) { os.Exit(netns.Main(m.Run)) }

// bed is an observed rig with nodes.
type bed struct {
	*rig.Rig
	*testing.T
	seen   *load.Observer
	master *rig.Master
}

func newBed(t *testing.T) *bed {
	t.Helper()
	r, err := rig.New(t.Context(), rig.Programs{APIServer: filepath.Join(bin, "sandbox-apiserver"), OVNKube: ovnkube,
		Schema: "/usr/share/ovn/ovn-nb.ovsschema"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{Rig: r, T: t}
	t.Cleanup(func() { b.must(r.Close()) })
	b.must(load.Nodes(t.Context(), r.Kube, nodes))
	b.must(load.Namespace(t.Context(), r.Kube, namespace))
	b.seen = b.observe()
	return b
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// nbctl asks the database, or changes it as somebody else would.
func (b *bed) nbctl(args ...string) string {
	b.Helper()
	out, err := exec.Command("ovn-nbctl", append([]string{"--db=unix:" + b.NB.Socket}, args...)...).CombinedOutput()
	if err != nil {
		b.Fatalf("ovn-nbctl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// observe observes until the test ends.
func (b *bed) observe() *load.Observer {
	b.Helper()
	o, err := load.Observe(context.WithoutCancel(b.Context()), b.Kube, b.NB.Socket)
	b.must(err)
	b.Cleanup(o.Close)
	return o
}

func (b *bed) start(ctx context.Context) {
	b.Helper()
	m, err := b.StartMaster(ctx)
	b.must(err)
	b.master = m
	b.Cleanup(func() {
		if b.master == m {
			b.must(m.Stop())
		}
	})
}

func (b *bed) stop() {
	b.Helper()
	m := b.master
	b.master = nil
	b.must(m.Stop())
}

// networked waits until n pods have annotations and ports.
func (b *bed) networked(ctx context.Context, n int) {
	b.Helper()
	_, err := b.seen.Annotated.Wait(ctx, namespace, n)
	b.must(err)
	_, err = b.seen.Ported.Wait(ctx, namespace, n)
	b.must(err)
}

func (b *bed) counts() rig.Counts {
	b.Helper()
	c, err := b.Counts(b.Context(), b.master)
	b.must(err)
	return c
}

// create makes the pods from to to-1.
func (b *bed) create(ctx context.Context, from, to int) {
	b.Helper()
	b.must(load.Parallel(ctx, to-from, func(ctx context.Context, i int) error {
		_, _, err := load.CreatePod(ctx, b.Kube, namespace, from+i, nodes)
		return err
	}))
}

// TestCounts counts the writes of the master through a backlog, a burst, a restart, services and policies.
func TestCounts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	b := newBed(t)
	b.backlog(ctx)
	b.burst(ctx)
	b.restart(ctx)
	b.services(ctx)
	b.policies(ctx)
	again := b.observe()
	const all = waiting + more + 1
	if a, p := again.Annotated.Count(namespace), again.Ported.Count(namespace); a != all || p != all {
		t.Errorf("in the end %d pods have annotations and %d have ports, want %d", a, p, all)
	}
}

// backlog starts the master when pods are waiting: a few transactions have all writes.
func (b *bed) backlog(ctx context.Context) {
	b.create(ctx, 0, waiting)
	before := b.counts()
	b.start(ctx)
	b.networked(ctx, waiting)
	b.must(load.WaitNodes(ctx, b.Kube, nodes))
	wrote := b.counts().Sub(before)
	if sent := max(wrote.Transactions, wrote.Logged); sent > waiting/10 || wrote.Refused != 0 {
		b.Errorf("%d Northbound transactions for %d pods, %d of them refused: want at most %d, and none refused", sent,
			waiting, wrote.Refused, waiting/10)
	}
	if wrote.PodPatches != waiting || wrote.NodePatches != nodes {
		b.Errorf("%d patches of pods and %d of nodes, want one for each of %d and %d", wrote.PodPatches, wrote.NodePatches,
			waiting, nodes)
	}
}

// burst creates pods at once while the master runs. Each is annotated once, and written once. The number of
// transactions depends on the speed of the API server, so only the number of pods limits it.
func (b *bed) burst(ctx context.Context) {
	before := b.counts()
	b.create(ctx, waiting, waiting+more)
	b.networked(ctx, waiting+more)
	wrote := b.counts().Sub(before)
	if wrote.PodPatches != more || wrote.NodePatches != 0 {
		b.Errorf("%d patches of pods and %d of nodes, want %d and none", wrote.PodPatches, wrote.NodePatches, more)
	}
	// A pod takes an insert, a place on its switch, and an address in its namespace's set, if it is alone in its
	// transaction.
	if wrote.Refused != 0 || wrote.Transactions > more || wrote.Operations < more || wrote.Operations > 3*more {
		b.Errorf("%d Northbound transactions, %d refused, with %d operations for %d pods: want no more transactions than "+
			"pods, and one to three operations each",
			wrote.Transactions, wrote.Refused, wrote.Operations, more)
	}
}

// restart restarts the master when nothing has to change. A new pod's writes follow all writes of the start. So once
// they are seen, the counts are final, and must be those of the pod alone.
func (b *bed) restart(ctx context.Context) {
	b.stop()
	before := b.counts()
	b.start(ctx)
	_, err := b.master.WaitReady(ctx)
	b.must(err)
	b.create(ctx, waiting+more, waiting+more+1)
	b.networked(ctx, waiting+more+1)
	wrote := b.counts().Sub(before)
	// Two transactions: the one that raises the leader epoch, and the pod's.
	want := rig.Counts{Logged: 2, PodPatches: 1, Transactions: 2, Operations: 3, Patches: 1}
	if wrote != want {
		b.Errorf("a restart and one new pod wrote %+v, want the epoch and the pod's own: %+v", wrote, want)
	}
}

// services creates services while the master runs, and removes one endpoint of each: one operation each.
func (b *bed) services(ctx context.Context) {
	seen, err := load.ObserveServices(b.NB.Socket)
	b.must(err)
	b.Cleanup(func() { b.must(seen.Close()) })
	before := b.counts()
	_, err = load.CreateServices(ctx, b.Kube, namespace, 0, services)
	b.must(err)
	_, err = seen.Whole.Wait(ctx, namespace, services)
	b.must(err)
	made := b.counts().Sub(before)
	// A service may come before its endpoints: an insert, its place in the group, and an update.
	if made.Refused != 0 || made.Operations > 3*services || made.Transactions > 2*services || made.Patches != 0 {
		b.Errorf("%d services wrote %+v, want at most 3 operations each in 2 transactions, and no patches", services, made)
	}
	before = b.counts()
	for i := range services {
		_, _, err := load.SetBackends(ctx, b.Kube, namespace, i, load.Backends-1)
		b.must(err)
	}
	_, err = seen.Short.Wait(ctx, namespace, services)
	b.must(err)
	if wrote := b.counts().Sub(before); wrote.Operations != services || wrote.Refused != 0 {
		b.Errorf("%d changes of an endpoint each wrote %+v, want an operation each", services, wrote)
	}
}

// policies makes two policies that isolate all pods, and removes them.
func (b *bed) policies(ctx context.Context) {
	const all = waiting + more + 1
	seen, err := load.ObservePolicies(b.NB.Socket)
	b.must(err)
	b.Cleanup(func() { b.must(seen.Close()) })
	before := b.counts()
	_, err = load.CreatePolicies(ctx, b.Kube, []load.Policy{{Namespace: namespace, Number: 0, Port: 80},
		{Namespace: namespace, Number: 1, Port: 81}})
	b.must(err)
	_, err = seen.Written.Wait(ctx, namespace, 2)
	b.must(err)
	_, err = seen.Isolated.Wait(ctx, "", all)
	b.must(err)
	// The first policy of all brings two groups with four ACLs to each node, and has the pods join one of them.
	made := b.counts().Sub(before)
	if made.Refused != 0 || made.Transactions > 4 || made.Operations > 12*nodes+10 || made.Patches != 0 {
		b.Errorf("2 policies wrote %+v, want at most 12 operations a node and 10 more, in 4 transactions, and no patches",
			made)
	}
	b.must(load.DeletePolicies(ctx, b.Kube, []string{namespace}))
	b.awaits(ctx, "the ACLs of the policies go", func() string {
		if n := seen.ACLs.Load(); n != 0 {
			return fmt.Sprintf("there are %d", n)
		}
		return ""
	})
}
