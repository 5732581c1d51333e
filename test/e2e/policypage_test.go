package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// TestPolicyPage does what docs/features/policy.md has newcomers do, and compares what they are shown.
func TestPolicyPage(t *testing.T) {
	const page, heading = "../../docs/features/policy.md", "## Try it"
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range machines.Blocks(t, page, heading) {
		if !strings.HasPrefix(block, "yaml\n") {
			commands = append(commands, block)
		}
	}
	t.Cleanup(func() { // the test's own context has ended
		out, err := sandbox(context.Background(), "kubectl", "delete", "namespace", "shop", "--ignore-not-found")
		if err != nil {
			t.Errorf("deleting the page's namespace: %v\n%s", err, out)
		}
	})
	script := strings.ReplaceAll(strings.Join(commands, "\n"), "bin/sandbox", "bin/sandbox --name "+name)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for want, times := range map[string]int{"\nweb ": 3, "wget: download timed out\n": 2, "\n- shop ": 6} {
		if n := strings.Count(string(out), want); n != times {
			t.Errorf("%q is there %d times in\n%s\nwant %d", want, n, out, times)
		}
	}
	shown := machines.Shown(t, page, heading, "text")
	if len(shown) != 2 {
		t.Fatalf("%s shows %d answers, want 2", page, len(shown))
	}
	for _, answer := range shown {
		if !strings.Contains(anyNumber(string(out)), anyNumber(answer)) {
			t.Errorf("nowhere in\n%s\nis, with any numbers,\n%s", out, answer)
		}
	}
	policies, err := os.ReadFile("../../docs/features/shop-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	yaml := machines.Shown(t, page, heading, "yaml")
	if _, want, _ := strings.Cut(string(policies), "\n"); len(yaml) != 1 || yaml[0] != want {
		t.Errorf("%s shows the policies %q, the file has %q", page, yaml, want)
	}
}

// anyNumber is a text without what differs from cluster to cluster: numbers, UUIDs, and which of two policies a line of
// the log names.
func anyNumber(text string) string {
	text = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(text, "UUID")
	text = strings.ReplaceAll(text, "np/shop/web isolates", "np/shop/deny isolates")
	return regexp.MustCompile(`\d+`).ReplaceAllString(text, "N")
}
