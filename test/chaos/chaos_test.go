package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/netns"
	"github.com/northbound-net/northbound/test/scale/rig"
)

func TestMain(m *testing.M) { os.Exit(netns.Main(m.Run)) }

// TestChaos breaks everything in the list, at random moments, while pods, Services, Nodes and networks come and go.
// A third of the pods lives in the cluster's own network, the others in two networks with the same ranges. After each
// fault new pods are served in time, the Northbound database is what the cluster wants, and pods reach each other. No
// address of a living pod changes, is lost or is given twice in a network. The master has less than twice the memory
// that the chart requests for it. In each network, a pod on one of two nodes with Open vSwitch sends to a pod on the
// other all the time.
// CHAOS_SEED and CHAOS_ROUNDS are numbers, CHAOS_AWAY and CHAOS_QUORUM are seconds. CHAOS_ONLY is a part of the names
// of faults.
func TestChaos(t *testing.T) {
	seed, rounds := machines.Number(t, "CHAOS_SEED", 1), machines.Number(t, "CHAOS_ROUNDS", 1)
	t.Logf("CHAOS_SEED=%d", seed)
	bin := filepath.Join("..", "..", "bin")
	w, err := newWorld(t.Context(), rig.Programs{
		APIServer: filepath.Join(bin, "sandbox-apiserver"), OVNKube: filepath.Join(bin, "ovnkube"),
		Schema: "/usr/share/ovn/ovn-nb.ovsschema",
	}, seed)
	if w != nil {
		t.Cleanup(func() { must(t, w.close()) })
	}
	must(t, err)
	w.away = time.Duration(machines.Number(t, "CHAOS_AWAY", 20)) * time.Second
	w.noQuorum = time.Duration(machines.Number(t, "CHAOS_QUORUM", 8)) * time.Second
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "fault\tround\tnew pods served after\tall settled after\tpods\taddresses given again\t"+
		"memory of the master\tpackets lost")
	for round := range rounds {
		order := faults()
		w.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, f := range order {
			if !strings.Contains(f.name, os.Getenv("CHAOS_ONLY")) {
				continue
			}
			t.Logf("round %d: %s", round, f.name)
			served, settled := w.suffer(t, f)
			living, reused := w.ledger.Counts()
			used, err := w.master.Usage()
			must(t, err)
			if used.RSS > enough {
				t.Errorf("%s: the master has %d MB of memory, want at most %d MB", f.name, used.RSS>>20, enough>>20)
			}
			fmt.Fprintf(out, "%s\t%d\t%.1f s\t%.1f s\t%d\t%d\t%d MB\t%s\n", f.name, round, served.Seconds(),
				settled.Seconds(), living, reused, used.RSS>>20, w.lost(t, f))
		}
	}
	must(t, out.Flush())
	t.Logf("%d changes\n%s%s", w.churn.changes, table.String(), strings.Join(w.notes, "\n"))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// suffer has the cluster change for a while, breaks something in the middle, and waits until all is as it should be. It
// returns how long that took from the moment at which nothing was broken any more.
func (w *world) suffer(t *testing.T, f fault) (served, settled time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	churning, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.churn.run(churning) }()
	must(t, w.pause(ctx, time.Duration(1000+w.random.IntN(1000))*time.Millisecond))
	if err := f.do(ctx, w); err != nil {
		t.Fatalf("%s: %v", f.name, err)
	}
	whole := time.Now()
	stop()
	if err := <-done; err != nil {
		t.Fatalf("%s: changing the cluster meanwhile: %v", f.name, err)
	}
	must(t, w.eventually(ctx, "a new pod is served in each network", w.newPods()))
	if served = time.Since(whole); served > f.within {
		t.Errorf("%s: a new pod was served after %s, want at most %s", f.name, served, f.within)
	}
	must(t, w.eventually(ctx, "all pods have addresses, and the database is what the cluster wants", w.inOrder))
	settled = time.Since(whole)
	must(t, w.awaitFlows(ctx))
	must(t, w.awaitCalm(ctx))
	for _, wrong := range w.ledger.Take() {
		t.Errorf("%s: %s", f.name, wrong)
	}
	return served, settled
}

// newPods makes a pod in each network, and asks whether they have addresses and ports.
func (w *world) newPods() func(context.Context) (string, error) {
	var made []int
	return func(ctx context.Context) (string, error) {
		if err := w.churn.restore(ctx); err != nil {
			return "", err
		}
		for len(made) < len(homes()) {
			if err := w.churn.newPod(ctx); err != nil {
				return "", err
			}
			made = append(made, w.churn.next)
		}
		for _, i := range made {
			out, err := w.nbctl(ctx, "--if-exists", "get", "logical_switch_port", home(i)+"_"+load.PodName(i), "addresses")
			if err != nil || strings.TrimSpace(out) == "" {
				return fmt.Sprintf("no port yet of the pod in %s: %s", home(i), out), err
			}
		}
		return "", nil
	}
}

// inOrder says what is not as it should be.
func (w *world) inOrder(ctx context.Context) (string, error) {
	waiting, err := w.churn.waiting(ctx)
	if err != nil || len(waiting) > 0 {
		return fmt.Sprintf("no addresses: %v", waiting), err
	}
	return w.plan(ctx)
}
