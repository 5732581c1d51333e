package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// result is the outcome of a run of the program.
type result struct {
	stdout, stderr string
	exit           int
}

// ovnkube runs the program as main does.
func ovnkube(ctx context.Context, stdin io.Reader, args ...string) result {
	var stdout, stderr bytes.Buffer
	app := newApp()
	app.Reader, app.Writer, app.ErrWriter = stdin, &stdout, &stderr
	err := app.RunContext(ctx, append([]string{"ovnkube"}, args...))
	exit := report(&stderr, err)
	return result{stdout.String(), stderr.String(), exit}
}

// String is the transcript of a run: standard output, then standard error, then the exit code if it is not 0.
func (r result) String() string {
	var b strings.Builder
	b.WriteString(r.stdout)
	if r.stderr != "" {
		b.WriteString("--- stderr ---\n" + r.stderr)
	}
	if r.exit != 0 {
		fmt.Fprintf(&b, "--- exit %d ---\n", r.exit)
	}
	return b.String()
}

// commands lists the commands that a golden input is for: its comment lines that start with "$ ".
func commands(t *testing.T, file string) [][]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out [][]string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if cmd, ok := strings.CutPrefix(lines.Text(), "# $ ovnkube "); ok {
			out = append(out, strings.Fields(cmd))
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no line \"# $ ovnkube ...\"", file)
	}
	return out
}

// update rewrites the golden files: go test ./go-controller/cmd/ovnkube -update.
func update() bool { return flag.Lookup("update").Value.String() == "true" }

func TestMain(m *testing.M) {
	if os.Getenv(asOvnkube) != "" {
		main() // exits
	}
	flag.Bool("update", false, "rewrite the golden files")
	flag.Parse()
	os.Exit(testkit.RunTests(m))
}

// Each command in an input file prints what the golden file has.
func TestGolden(t *testing.T) {
	t.Chdir("testdata")
	inputs, err := filepath.Glob("*.in.yaml")
	if err != nil || len(inputs) < 11 {
		t.Fatalf("%d inputs, %v; want 11 or more", len(inputs), err)
	}
	for _, in := range inputs {
		t.Run(in, func(t *testing.T) {
			var got strings.Builder
			for _, args := range commands(t, in) {
				fmt.Fprintf(&got, "$ ovnkube %s\n%s\n", strings.Join(args, " "), ovnkube(t.Context(), nil, args...))
			}
			golden(t, strings.TrimSuffix(in, ".in.yaml")+".out.txt", got.String())
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if update() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs at %s; run with -update if it should", file, firstDifference(got, string(want)))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) {
			return fmt.Sprintf("line %d:\n got %q\nwant the end", i+1, g[i])
		}
		if g[i] != w[i] {
			return fmt.Sprintf("line %d:\n got %q\nwant %q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("line %d:\n got the end\nwant %q", len(g)+1, w[len(g)])
}

// The output does not depend on the order of the documents, nor on their distribution over files.
func TestTranslateOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, in := range []string{"dual-stack", "services", "host-and-finished"} {
		raw, err := os.ReadFile(filepath.Join("testdata", in+".in.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		docs := regexp.MustCompile(`(?m)^---\n`).Split(string(raw), -1)
		for _, format := range []string{"show", "json", "ovsdb", "nbctl", "dot"} {
			args := []string{"translate", "-o", format, "--cluster-subnets", "10.244.0.0/16/24,fd01::/48/64", "-f"}
			want := ovnkube(t.Context(), strings.NewReader(string(raw)), append(args, "-")...)
			if want.stdout == "" || want.exit != 0 {
				t.Fatalf("%s: %s", in, want)
			}
			for range 3 {
				r.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
				if got := ovnkube(t.Context(), strings.NewReader(strings.Join(docs, "\n---\n")),
					append(args, "-")...); got != want {
					t.Errorf("%s -o %s: shuffled documents differ at %s", in, format, firstDifference(got.String(), want.String()))
				}
			}
			dir := t.TempDir()
			for i, d := range docs {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), []byte(d), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := ovnkube(t.Context(), nil, append(args, dir)...); got != want {
				t.Errorf("%s -o %s: a directory differs at %s", in, format, firstDifference(got.String(), want.String()))
			}
		}
	}
}

func TestTranslateFailsOnWrite(t *testing.T) {
	app := newApp()
	app.Writer, app.ErrWriter = brokenPipe{}, io.Discard
	err := app.RunContext(t.Context(), []string{"ovnkube", "translate", "-f", "testdata/one-node.in.yaml"})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writing to a closed pipe: %v", err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
