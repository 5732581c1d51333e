package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// ProgramDir is where an isolated test finds its own copy of the programs that
// RunWith built.
const ProgramDir = "/run/bin"

// programsEnv names the directory that RunWith builds programs in.
const programsEnv = "NORTHBOUND_TEST_PROGRAMS"

// RunWith is RunTests for tests that run programs of ours: it builds the programs of some packages first. They are
// built once, before any test is in a network namespace: from there the go command could download no module.
func RunWith(m *testing.M, packages ...string) int {
	if os.Getenv(programsEnv) != "" {
		return RunTests(m) // the process of an isolated test
	}
	dir, err := buildPrograms(packages)
	code := 1
	if err == nil {
		err = os.Setenv(programsEnv, dir)
	}
	if err == nil {
		code = RunTests(m)
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func buildPrograms(packages []string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "northbound-test-"); err != nil {
		return "", fmt.Errorf("making a directory for programs: %w", err)
	}
	build := exec.Command("go", append([]string{"build", "-ldflags=-s -w", "-o", dir + "/"}, packages...)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building %v: %w\n%s", packages, err, out)
	}
	return dir, nil
}

// Program is the path of a program that RunWith built.
func Program(t testing.TB, name string) string {
	t.Helper()
	dir := ProgramDir
	if os.Getenv(isolatedEnv) == "" {
		dir = os.Getenv(programsEnv)
	}
	path := filepath.Join(dir, name)
	if err := unix.Access(path, unix.X_OK); err != nil {
		t.Fatalf("%s: %v: TestMain must have RunWith build it", path, err)
	}
	return path
}

// copyPrograms gives an isolated test its copy.
func copyPrograms(t *testing.T) {
	t.Helper()
	dir := os.Getenv(programsEnv)
	if dir == "" {
		return
	}
	if err := os.CopyFS(ProgramDir, os.DirFS(dir)); err != nil {
		t.Fatalf("copying the programs that the test runs: %v", err)
	}
}
