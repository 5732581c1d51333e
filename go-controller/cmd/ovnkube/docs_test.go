package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const docsDir = "../../../docs/features"

// asOvnkube is an environment variable that makes this test binary run as ovnkube.
const asOvnkube = "NORTHBOUND_TEST_AS_OVNKUBE"

// The commands in the documentation print what the pages show. A shell runs the commands of a page in order, in a
// directory with the page's example files, against real servers.
func TestDocs(t *testing.T) {
	for page, database := range map[string]func(t *testing.T) string{
		"translate.md":    func(t *testing.T) string { return testkit.StartOVSDB(t, testkit.NBSchemas()["23.03"]) },
		"explain.md":      func(t *testing.T) string { return testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]) },
		"policy-check.md": func(t *testing.T) string { return testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]) },
		"plan.md": func(t *testing.T) string {
			out := ovnkube(t.Context(), nil, "translate", "-f", filepath.Join(docsDir, "cluster.yaml"), "-o", "ovsdb")
			if out.exit != 0 {
				t.Fatal(out)
			}
			return testkit.ServeOVSDB(t, out.stdout, "")
		},
	} {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(docsDir, page))
			if err != nil {
				t.Fatal(err)
			}
			sh := newShell(t, database(t))
			steps := console(string(text))
			if len(steps) < 5 {
				t.Fatalf("%d commands in %s, want at least 5", len(steps), page)
			}
			for _, s := range steps {
				if got := sh.run(t, s.command); !matches(s.output, got) {
					t.Errorf("$ %s\nprints\n%s\nthe page says\n%s", s.command, got, s.output)
				}
			}
		})
	}
}

// TestExampleManifests translates the manifests that pages tell readers to apply: nothing is wrong with any of them.
func TestExampleManifests(t *testing.T) {
	const nodes = "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n---\n" +
		"{apiVersion: v1, kind: Node, metadata: {name: n2}}\n"
	files, err := filepath.Glob(filepath.Join(docsDir, "*.yaml"))
	if err != nil || len(files) < 7 {
		t.Fatalf("%d manifests, %v; want 7 or more", len(files), err)
	}
	for _, f := range files {
		all := readFile(t, f)
		if !strings.Contains(all, "kind: Node,") {
			all += "\n---\n" + nodes
		}
		out := ovnkube(t.Context(), strings.NewReader(all), "translate", "-f", "-", "--cluster-subnets",
			"10.128.0.0/14/23,fd01::/48/64")
		if out.exit != 0 || out.stderr != "" {
			t.Errorf("translating %s: %s", f, out)
		}
	}
}

// step is a command in a page with the output that the page shows.
type step struct{ command, output string }

// console finds the commands in a page's console blocks: lines that start with "$ ", each followed by its output.
func console(page string) []step {
	var out []step
	inside := false
	for line := range strings.Lines(page) {
		switch cmd, isCommand := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "```"):
			inside = strings.TrimSpace(line) == "```console"
		case inside && isCommand:
			out = append(out, step{command: strings.TrimSpace(cmd)})
		case inside && len(out) > 0:
			out[len(out)-1].output += line
		}
	}
	return out
}

// matches compares output with a page. A line "..." in the page stands for any lines, and "..." within a line for any
// text.
func matches(page, got string) bool {
	pattern := regexp.QuoteMeta(page)
	pattern = regexp.MustCompile(`(?m)^\\\.\\\.\\\.\n`).ReplaceAllString(pattern, `(?s:.*)`)
	pattern = strings.ReplaceAll(pattern, `\.\.\.`, `.*`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(got)
}

// shell runs commands in a directory of its own, with ovnkube in PATH.
type shell struct {
	dir string
	env []string
}

func newShell(t *testing.T, remote string) shell {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "ovnkube")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cluster.yaml", "policies.yaml", "networks.yaml"} {
		examples, err := os.ReadFile(filepath.Join(docsDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), examples, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return shell{dir, append(os.Environ(), asOvnkube+"=1", "NORTHBOUND_NB_ADDRESS="+remote, "OVN_NB_DB="+remote,
		fmt.Sprintf("PATH=%s:%s:%s", bin, filepath.Dir(testkit.Tool(t, "ovsdb-tool")), os.Getenv("PATH")))}
}

// run returns what a command prints to standard output and standard error.
func (s shell) run(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("$ %s: %v\n%s", command, err, out)
	}
	return string(out)
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		page, got string
		want      bool
	}{
		{"a\n", "a\n", true},
		{"a\n", "a\nb\n", false},
		{"a\n...\n", "a\nb\nc\n", true},
		{"a\n...\nc\n", "a\nb\nc\n", true},
		{"a ... c\n", "a b c\n", true},
		{"a ... c\n", "a b\n c\n", false},
		{"a.b\n", "axb\n", false},
		{"...\n", "", true},
		{"", "x\n", false},
	} {
		if got := matches(c.page, c.got); got != c.want {
			t.Errorf("matches(%q, %q) = %v", c.page, c.got, got)
		}
	}
}
