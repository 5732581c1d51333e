package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Golden compares, for each DIR/NAME.in.yaml, what output makes of its contents
// with DIR/NAME.out.txt, in a subtest NAME. There must be at least least of
// them. With UPDATE_GOLDEN set in the environment the outputs are written anew.
func Golden(t *testing.T, dir string, least int, output func(t *testing.T, in []byte) string) {
	t.Helper()
	inputs, err := filepath.Glob(filepath.Join(dir, "*.in.yaml"))
	if err != nil || len(inputs) < least {
		t.Fatalf("%d inputs (%v), want at least %d", len(inputs), err, least)
	}
	for _, file := range inputs {
		name := strings.TrimSuffix(file, ".in.yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			in, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := output(t, in)
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(name+".out.txt", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name + ".out.txt")
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("of %s:\n%s\nwant:\n%s", file, got, want)
			}
		})
	}
}
