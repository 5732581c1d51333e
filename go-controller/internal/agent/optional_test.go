package agent

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// passes is how often the running agent has compared the node with its wanted state.
func (b *bed) passes(t *testing.T) (n uint64) {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "northbound_node_pass_seconds" {
			n = f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	return n
}

// An annotation that an earlier version's admission policies refuse is not written again in each pass. The node is set
// up all the same, and its other annotations are written.
func TestRefusedAnnotation(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := bareBed(t)
	var refused atomic.Int32
	b.client.PrependReactor("patch", "nodes", func(a kubetesting.Action) (bool, runtime.Object, error) {
		p, ok := a.(kubetesting.PatchAction)
		if !ok || !strings.Contains(string(p.GetPatch()), annotation.NodePhysicalNetworks) {
			return false, nil, nil
		}
		refused.Add(1)
		return true, nil, errors.New("an agent may change no annotations but others")
	})
	b.start(t)
	b.becomeReady(t)
	b.awaitAnnotations(t, map[string]string{annotation.NodeAgentReady: annotation.NodeIsReady})
	before := b.passes(t)
	for i := range 3 {
		testkit.Run(t, "ovs-vsctl", "--no-wait", "set", "Open_vSwitch", ".", fmt.Sprintf("external_ids:other=%d", i))
		testkit.Eventually(t, "another pass", func() string {
			if n := b.passes(t); n <= before+uint64(i) {
				return fmt.Sprintf("%d passes, as %d before", n, before)
			}
			return ""
		})
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("the refused annotation was written %d times in %d passes, want once", n, b.passes(t))
	}
}
