package attach_test

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/scale/attach"
	"github.com/northbound-net/northbound/test/scale/load"
)

const deadline = 3 * time.Minute // of the whole test, which takes about ten seconds

// The plugin attaches one pod, and Bare attaches one port. Every phase is measured, and DEL leaves nothing behind.
func TestAttach(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	bin, err := filepath.Abs("../../../bin")
	must(t, err)
	var progress strings.Builder
	b, err := attach.New(ctx, "attach", bin, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	t.Cleanup(func() { must(t, b.Close()) })
	must(t, b.Netns(ctx, attach.Namespace, 1))
	must(t, b.Netns(ctx, attach.BareNamespace, 1))
	must(t, b.CreateBare(1))
	must(t, b.Create(ctx, 0))
	must(t, b.WaitBound(ctx, attach.Namespace, 1))
	must(t, b.WaitBound(ctx, attach.BareNamespace, 1))
	ports(t, b, 0)
	timing, err := b.Add(ctx, 0)
	must(t, err)
	if len(timing.Phases) != 5 || timing.Served <= 0 || timing.Whole < timing.Served {
		t.Errorf("ADD took %+v, want five phases, and the whole longer than the agent's part", timing)
	}
	ports(t, b, 1)
	bare, err := b.Bare(ctx, 0)
	must(t, err)
	if bare.Veth <= 0 || bare.Port <= 0 || bare.Installed <= 0 {
		t.Errorf("by hand it took %+v", bare)
	}
	ports(t, b, 1) // the other port does not belong to a container
	_, err = b.Del(ctx, 0)
	must(t, err)
	ports(t, b, 0)
	flows(ctx, t, b)
	policyFlows(ctx, t, b)
}

// flows watches a service arrive in the node's flows, and an endpoint vanish.
func flows(ctx context.Context, t *testing.T, b *attach.Bed) {
	t.Helper()
	come, gone := load.NewTracker("the flow"), load.NewTracker("the changed flow")
	w, err := b.WatchFlows(come)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	addresses, err := b.CreateServices(ctx, "flows", 1)
	must(t, err)
	first, err := come.WaitName(ctx, load.Name{Name: addresses[0]})
	must(t, err)
	must(t, b.FlowsInSync(ctx)) // several flows are about the address
	w.To(gone)
	sent, _, err := b.SetBackends(ctx, "flows", 0, load.Backends-1)
	must(t, err)
	second, err := gone.WaitName(ctx, load.Name{Name: addresses[0]})
	must(t, err)
	if !first.Before(sent) || !second.After(sent) {
		t.Errorf("the flow came at %s and changed at %s, the change was asked for at %s: want that in between", first, second,
			sent)
	}
}

// policyFlows watches a policy of one pod arrive in the node's flows.
func policyFlows(ctx context.Context, t *testing.T, b *attach.Bed) {
	t.Helper()
	const namespace, port = "policies", 10000
	must(t, load.Namespace(ctx, b.Kube(), namespace))
	pod := load.Pod(namespace, 0, 1)
	pod.Spec.NodeName = b.NodeName()
	pod, err := b.Kube().CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	must(t, err)
	must(t, b.WaitBound(ctx, namespace, 1))
	must(t, b.Plug(ctx, []*corev1.Pod{pod}))
	seen := load.NewTracker("the flow")
	w, err := b.WatchPolicyFlows(seen)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	sent, _, err := load.CreatePolicy(ctx, b.Kube(), load.Policy{Namespace: namespace, Port: port})
	must(t, err)
	at, err := seen.WaitName(ctx, load.Name{Name: strconv.Itoa(port)})
	must(t, err)
	if !at.After(sent) {
		t.Errorf("the flow came at %s, before the policy was asked for at %s", at, sent)
	}
}

func ports(t *testing.T, b *attach.Bed, want int) {
	t.Helper()
	if got, err := b.Ports(t.Context()); err != nil || got != want {
		t.Errorf("%d ports of containers, want %d (%v)", got, want, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Compare runs both programs equally often.
func TestCompare(t *testing.T) {
	plugin, err := filepath.Abs("../../../bin/ovn_cni")
	must(t, err)
	p, o, err := attach.Compare(t.Context(), plugin, "/bin/true", 3)
	must(t, err)
	if len(p.Runs) != 3 || len(o.Runs) != 3 || p.Size == 0 || o.Size == 0 {
		t.Errorf("%+v, %+v", p, o)
	}
}
