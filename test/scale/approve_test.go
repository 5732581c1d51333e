package scale

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/scale/load"
)

// ovnkube runs a command with the servers of the bed, and returns all that it prints.
func (b *bed) ovnkube(ctx context.Context, args ...string) string {
	b.Helper()
	args = append(args, "--kubeconfig", b.Kubeconfig(), "--nb-address", "unix:"+b.NB.Socket)
	out, _ := exec.CommandContext(ctx, ovnkube, args...).CombinedOutput() // exit code 2 says that there is a difference
	return string(out)
}

// ports is how many logical ports of pods the database has.
func (b *bed) ports() int {
	b.Helper()
	return len(strings.Fields(b.nbctl("--bare", "--columns=name", "find", "logical_switch_port", `type=""`,
		"external_ids:namespace="+namespace)))
}

// awaits waits until what is so; why says why it is not.
func (b *bed) awaits(ctx context.Context, what string, why func() string) {
	b.Helper()
	for last := why(); last != ""; last = why() {
		select {
		case <-ctx.Done():
			b.Fatalf("%s: %s", what, last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// readyz is what the master on this address answers.
func readyz(ctx context.Context, addr string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return err.Error()
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return fmt.Sprint(answer.StatusCode, " ", string(body), err)
}

// A master that starts, and finds that the API server does not know most of the pods any more, removes nothing until it
// is told to, as docs/operate/master.md has it. What is new it serves.
func TestApprove(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	b := newBed(t)
	const addr, pods = "127.0.0.1:9409", 300
	first := b.candidate(ctx, addr)
	b.create(ctx, 0, pods)
	b.networked(ctx, pods)
	b.must(first.Stop())
	now := metav1.NewDeleteOptions(0)
	b.must(b.Kube.CoreV1().Pods(namespace).DeleteCollection(ctx, *now, metav1.ListOptions{}))
	second, err := b.StartMasterAt(ctx, addr)
	b.must(err)
	t.Cleanup(func() { b.must(second.Stop()) })

	held := fmt.Sprintf("the removal of %d of ", pods)
	b.awaits(ctx, "/readyz says what waits", func() string {
		if said := readyz(ctx, addr); !strings.HasPrefix(said, "503 ") || !strings.Contains(said, held) {
			return said
		}
		return ""
	})
	b.awaits(ctx, "an Event says what waits", func() string {
		events, err := b.Kube.CoreV1().Events("").List(ctx, metav1.ListOptions{})
		b.must(err)
		for _, e := range events.Items {
			on := e.InvolvedObject.Kind + " " + e.InvolvedObject.Name
			if on == "Namespace kube-system" && e.Reason == "RemovalHeldBack" && strings.Contains(e.Message, held) {
				return ""
			}
		}
		return fmt.Sprintf("there are %d others", len(events.Items))
	})
	b.create(ctx, pods, pods+1)
	_, err = b.seen.Ported.WaitName(ctx, load.Name{Namespace: namespace, Name: load.PodName(pods)})
	b.must(err)
	if n := b.ports(); n != pods+1 {
		t.Errorf("while the removal waits %d pods have ports, want %d", n, pods+1)
	}
	b.approve(ctx, pods+1)
	b.awaits(ctx, "the removal", func() string {
		if n := b.ports(); n != 1 {
			return fmt.Sprintf("%d pods have ports, want one", n)
		}
		return ""
	})
	_, err = second.WaitReady(ctx)
	b.must(err)
}

// approve approves the removal that ovnkube shows. Until then so many pods have ports.
func (b *bed) approve(ctx context.Context, pods int) {
	b.Helper()
	shown := b.ovnkube(ctx, "approve")
	_, digest, _ := strings.Cut(shown, "To approve it: ovnkube approve --digest ")
	digest = strings.TrimSpace(digest)
	if plan := b.ovnkube(ctx, "plan"); digest == "" || !strings.Contains(plan, "ovnkube approve --digest "+digest) {
		b.Fatalf("ovnkube approve prints\n%s\nand plan\n%s", shown, plan)
	}
	other := b.ovnkube(ctx, "approve", "--digest", "0123456789abcdef")
	if !strings.Contains(other, "the removal has changed") {
		b.Errorf("a digest of something else: %s", other)
	}
	if n := b.ports(); n != pods {
		b.Errorf("before the approval %d pods have ports, want %d", n, pods)
	}
	if said := b.ovnkube(ctx, "approve", "--digest", digest); !strings.Contains(said, "Approved.") {
		b.Errorf("the approval: %s", said)
	}
}
