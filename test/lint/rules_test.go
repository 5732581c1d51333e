package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRules runs the command on code that breaks the rules, and on code that may,
// in testdata/wrong. A comment "want RULE..." names the rules that its line
// breaks, "want-above" and "want-below" those of the line beside it.
func TestRules(t *testing.T) {
	lint := built(t)
	vet := exec.Command("go", "vet", "-vettool="+lint, "./...")
	vet.Dir = filepath.Join("testdata", "wrong")
	out, err := vet.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("go vet: %v, want it to find something\n%s", err, out)
	}
	var have []string
	for _, m := range regexp.MustCompile(`(?m)^(\S+:\d+):\d+: .*\((\w+)\)$`).FindAllStringSubmatch(string(out), -1) {
		have = append(have, m[1]+" "+m[2])
	}
	want := wanted(t, vet.Dir)
	slices.Sort(have)
	slices.Sort(want)
	for _, w := range want {
		if !slices.Contains(have, w) {
			t.Errorf("not found: %s", w)
		}
	}
	for _, h := range have {
		if !slices.Contains(want, h) {
			t.Errorf("found: %s", h)
		}
	}
	if t.Failed() {
		t.Logf("go vet printed:\n%s", out)
	}
}

// TestFindingsOfDependencies looks first at a package that imports a wrong one,
// then at the wrong one. What the go command keeps of the first run hides nothing.
func TestFindingsOfDependencies(t *testing.T) {
	lint, dir := built(t), t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module github.com/northbound-net/northbound/dependencies\n\ngo 1.26\n",
		"wrong/a.go": "// Package wrong is wrong.\npackage wrong\n\nfunc init() {}\n",
		"import/b.go": "// Package b is right.\npackage b\n\n" +
			"import _ \"github.com/northbound-net/northbound/dependencies/wrong\" // it runs\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"./import", "./wrong", "./wrong"} {
		vet := exec.Command("go", "vet", "-vettool="+lint, name)
		vet.Dir = dir
		out, err := vet.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "wrong/a.go:4:1: func init: ") {
			t.Errorf("go vet %s: %v, want it to find func init of package wrong\n%s", name, err, out)
		}
	}
}

// built is the command, built for the test.
func built(t *testing.T) string {
	t.Helper()
	lint := filepath.Join(t.TempDir(), "lint")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", lint, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, out)
	}
	return lint
}

// wanted are "FILE:LINE RULE" of the comments below dir.
func wanted(t *testing.T, dir string) (want []string) {
	t.Helper()
	offset := map[string]int{"": 1, "-above": 0, "-below": 2} // lines count from 1
	comment := regexp.MustCompile(`// want(|-above|-below) ([\w ]+)$`)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		for i, line := range strings.Split(string(text), "\n") {
			if m := comment.FindStringSubmatch(line); m != nil {
				for _, rule := range strings.Fields(m[2]) {
					want = append(want, fmt.Sprintf("%s:%d %s", path, i+offset[m[1]], rule))
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return want
}
