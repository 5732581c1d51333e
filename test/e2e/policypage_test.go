package e2e

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

const policyPage = "../../docs/features/policy.md"

// TestPolicyPage does what docs/features/policy.md has newcomers do, and compares what they are shown.
func TestPolicyPage(t *testing.T) {
	const page, heading = policyPage, "## Try it"
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
	out := typed(t, strings.Join(commands, "\n"))
	for want, times := range map[string]int{"\nweb ": 3, "wget: download timed out\n": 2, "\n- shop ": 6} {
		if n := strings.Count(out, want); n != times {
			t.Errorf("%q is there %d times in\n%s\nwant %d", want, n, out, times)
		}
	}
	shown := machines.Shown(t, page, heading, "text")
	if len(shown) != 3 {
		t.Fatalf("%s shows %d answers, want 3", page, len(shown))
	}
	for _, answer := range shown {
		if !strings.Contains(anyNumber(out), anyNumber(answer)) {
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
	timesOut(t)
}

// timesOut looks for the reason why the page's connection is denied, as the page says.
func timesOut(t *testing.T) {
	t.Helper()
	var script []string
	for _, block := range machines.Blocks(t, policyPage, "## When a connection times out") {
		if !strings.HasPrefix(block, "sysctl ") { // of a node: the cause is another one here
			script = append(script, block)
		}
	}
	inSandbox := regexp.MustCompile(`(?m)(^|\()(?:ovn-)?(nbctl|ovnkube|kubectl) `)
	out := typed(t, inSandbox.ReplaceAllString(strings.Join(script, "\n"), "${1}bin/sandbox $2 "))
	for _, want := range []string{"ingress  denied   isolated by np/shop/deny, np/shop/web, and no rule allows this",
		"from pods role=client of namespace shop, tcp/8080: np/shop/web spec.ingress[0]", "kubernetes.io/metadata.name=shop",
		": iso_in_", ` && tcp.dst == 8080"`, "_v4\naddresses           : [\""} {
		if !strings.Contains(out, want) {
			t.Errorf("nowhere in\n%s\nis %q", out, want)
		}
	}
}

// typed is the output of commands, typed one after the other in the repository's directory. The last one must succeed.
func typed(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c",
		strings.ReplaceAll(script, "bin/sandbox", "bin/sandbox --name "+name))
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return string(out)
}

// anyNumber is a text without what differs from cluster to cluster: numbers, UUIDs, and which of two policies a line of
// the log names.
func anyNumber(text string) string {
	text = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(text, "UUID")
	text = strings.ReplaceAll(text, "np/shop/web isolates", "np/shop/deny isolates")
	return regexp.MustCompile(`\d+`).ReplaceAllString(text, "N")
}
