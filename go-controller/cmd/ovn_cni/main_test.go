package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a program in a directory. It returns standard output and standard error.
func run(t *testing.T, dir string, env []string, name string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), &out, &errors
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, errors.String())
	}
	return out.String(), errors.String()
}

// repository makes a git repository with a commit, and returns its directory.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "--allow-empty", "--message=x"},
	} {
		run(t, dir, []string{"GIT_COMMITTER_DATE=2026-01-02T03:04:05+02:00", "GIT_CONFIG_GLOBAL=/dev/null"}, "git", args...)
	}
	return dir
}

// stamps runs the function of that name of test/building.sh, which the builds use.
func stamps(t *testing.T, dir string, env ...string) string {
	t.Helper()
	out, _ := run(t, "../../../test", append(env, "GIT_CONFIG_GLOBAL=/dev/null"),
		"bash", "-euc", `. ./building.sh; stamps "$1"`, "bash", dir)
	return strings.TrimSpace(out)
}

// value returns what linker flags set a variable to.
func value(t *testing.T, flags, variable string) string {
	t.Helper()
	for _, f := range strings.Fields(flags) {
		if _, v, ok := strings.Cut(f, "/internal/version."+variable+"="); ok {
			return v
		}
	}
	t.Fatalf("linker flags %q: no %s", flags, variable)
	return ""
}

// Builds take the version from git: the nearest tag, the commits since then, and whether files were changed.
func TestStamps(t *testing.T) {
	dir := repository(t)
	flags := stamps(t, dir)
	commit, when := value(t, flags, "commit"), value(t, flags, "commitTime")
	if len(commit) != 40 || !strings.HasPrefix(commit, value(t, flags, "tag")) {
		t.Errorf("flags %s: want the commit, and its first digits as the version", flags)
	}
	if when != "2026-01-02T01:04:05Z" {
		t.Errorf("commit time %s, want it in UTC", when)
	}
	run(t, dir, nil, "git", "tag", "v1.2.3")
	if have := value(t, stamps(t, dir), "tag"); have != "v1.2.3" {
		t.Errorf("version %s, want v1.2.3", have)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, "git", "add", "f")
	if have := value(t, stamps(t, dir), "tag"); have != "v1.2.3-dirty" {
		t.Errorf("version %s, want v1.2.3-dirty", have)
	}
	flags = stamps(t, dir, "NORTHBOUND_VERSION=v4")
	if have := value(t, flags, "tag"); have != "v4" || value(t, flags, "commit") != commit {
		t.Errorf("flags %s: want version v4, commit %s", flags, commit)
	}
	archive := t.TempDir() // without .git
	if have := stamps(t, archive); have != "" {
		t.Errorf("without git: flags %q, want none", have)
	}
	if have := value(t, stamps(t, archive, "NORTHBOUND_VERSION=v4"), "tag"); have != "v4" {
		t.Errorf("without git: version %s, want v4", have)
	}
}

// A person who runs the plugin learns its version. The runtime's command VERSION stays CNI's own.
func TestVersion(t *testing.T) {
	dir := repository(t)
	run(t, dir, nil, "git", "tag", "v1.2.3")
	flags := stamps(t, dir)
	program := filepath.Join(t.TempDir(), "ovn_cni")
	run(t, ".", []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags=-s -w "+flags, "-o", program, ".")
	stdout, stderr := run(t, ".", []string{"CNI_COMMAND="}, program)
	want := "ovn_cni v1.2.3, commit " + value(t, flags, "commit")[:12] + ", go"
	if stdout != "" || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "ovnkube node") {
		t.Errorf("by hand: standard output %q, error %q, want the latter to begin with %q", stdout, stderr, want)
	}
	stdout, stderr = run(t, ".", []string{"CNI_COMMAND=VERSION"}, program)
	if !strings.HasPrefix(stdout, `{"cniVersion":"1.1.0","supportedVersions":["0.3.0"`) || stderr != "" {
		t.Errorf("CNI_COMMAND=VERSION: standard output %q, error %q", stdout, stderr)
	}
}
