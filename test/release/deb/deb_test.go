package deb

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
)

func source() Source {
	return Source{Programs: "../../../bin", Units: "../../../dist/systemd", License: "../../../LICENSE", Version: "v1.2.3",
		Architecture: "amd64", Time: time.Unix(1767323045, 0)}
}

func built(t *testing.T, s Source) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "northbound.deb")
	if err := Build(t.Context(), s, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPackage installs the package on a Debian system with dpkg, upgrades it and removes it.
func TestPackage(t *testing.T) {
	root, err := rootfs.Ensure(t.Context(), rootfs.DefaultCache, rootfs.Tested, progress.New(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	first, second := built(t, source()), source()
	second.Version = "v1.2.4"
	later := built(t, second)
	run := system(t, root, first, later)
	for _, step := range []struct{ script, want string }{
		{"dpkg --install /first.deb", "Setting up northbound (1.2.3)"},
		{"ovnkube version && kubectl-northbound --help && test -x /opt/cni/bin/ovn_cni", "look at a cluster's network"},
		{"CNI_COMMAND=VERSION /opt/cni/bin/ovn-k8s-cni-overlay < /dev/null", "supportedVersions"},
		{"ovn-k8s-watcher --help", "ovnkube watcher"},
		{"kubectl_complete-northbound sta", "status"},
		{"stat --format '%a %U' /etc/default/ovnkube-node", "600 root"},
		{"systemd-analyze verify --man=no /usr/lib/systemd/system/ovnkube-node.service; echo verified", "verified"},
		{"bash -c '. /usr/share/bash-completion/completions/ovnkube; complete -p ovnkube'", "_ovnkube"},
		{"grep TH /usr/share/man/man1/kubectl-northbound.1", ".TH kubectl-northbound 1"},
		{"dpkg --verify northbound", ""},
		// From here on systemd seems to run. It notes what it is told.
		{`mkdir -p /run/systemd/system; printf '#!/bin/sh\necho "$@" >>/told\n' >/usr/sbin/systemctl
			chmod +x /usr/sbin/systemctl`, ""},
		{"echo NORTHBOUND_LOG_LEVEL=debug >> /etc/default/ovnkube-node; dpkg --install /later.deb",
			"northbound (1.2.4) over (1.2.3)"},
		{"tail -n 1 /etc/default/ovnkube-node", "NORTHBOUND_LOG_LEVEL=debug"},
		{"grep try-restart /told && ! grep disable /told", "try-restart ovnkube-master.service ovnkube-node.service"},
		{"dpkg --remove northbound", "Removing northbound"},
		{"grep disable /told", "disable --now ovnkube-master.service ovnkube-node.service"},
		{"tail -n 1 /told", "daemon-reload"},
		{"! command -v ovnkube ovn-k8s-watcher kubectl-northbound && ! test -e /opt/cni/bin/ovn_cni && " +
			"! test -L /opt/cni/bin/ovn-k8s-cni-overlay && " +
			"! ls /usr/lib/systemd/system/ovnkube-*", "No such file"},
		{"tail -n 1 /etc/default/ovnkube-node", "NORTHBOUND_LOG_LEVEL=debug"},
		{"dpkg --purge northbound", "Purging configuration files"},
		{"find / -xdev -newer /first.deb -name '*ovnkube*' -o -xdev -name 'ovn_cni'; echo nothing else", "nothing else"},
	} {
		out, err := run(step.script)
		if err != nil || !strings.Contains(out, step.want) || strings.Contains(step.script, "find") &&
			out != "nothing else\n" {
			t.Fatalf("%s: %v\n%s\nwant %s", step.script, err, out, step.want)
		}
	}
}

// system returns a function that runs scripts in a copy of a root filesystem that has two packages, one after the
// other.
func system(t *testing.T, root, first, later string) func(script string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range map[string]string{"first.deb": first, "later.deb": later} {
		if err := os.Link(file, filepath.Join(dir, "upper", name)); err != nil {
			t.Fatal(err)
		}
	}
	return func(script string) (string, error) {
		// The mount is gone with its namespace.
		mount := fmt.Sprintf("mount -t overlay overlay -o lowerdir=%s,upperdir=%s/upper,workdir=%s/work %s/merged", root,
			dir, dir, dir)
		cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "bash", "-euc",
			mount+` && exec chroot "$1" bash -euc "$2"`, "bash", filepath.Join(dir, "merged"), script)
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// The same input makes the same bytes.
func TestReproducible(t *testing.T) {
	a, err := os.ReadFile(built(t, source()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(built(t, source()))
	if err != nil || string(a) != string(b) {
		t.Errorf("two packages of the same input differ: %v", err)
	}
}

// What is missing is named.
func TestMissing(t *testing.T) {
	for want, change := range map[string]func(*Source){
		"/nowhere/ovnkube": func(s *Source) { s.Programs = "/nowhere" },
		"/nowhere/units":   func(s *Source) { s.Units = "/nowhere/units" },
		"/nowhere/LICENSE": func(s *Source) { s.License = "/nowhere/LICENSE" },
		"no such file":     func(s *Source) { s.Units = t.TempDir() + "/none" },
	} {
		s := source()
		change(&s)
		if err := Build(t.Context(), s, filepath.Join(t.TempDir(), "x.deb")); err == nil || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%v, want an error about %s", err, want)
		}
	}
}

// Commits are older than releases, and candidates than their release.
func TestVersion(t *testing.T) {
	for of, want := range map[string]string{
		"v1.2.3": "1.2.3", "3e1a92d-dirty": "0~3e1a92d.dirty", "v1.2.3-4-gabc": "1.2.3.4.gabc", "v2.0.0~rc1": "2.0.0~rc1",
	} {
		if got := Version(of); got != want {
			t.Errorf("Version(%q) = %q, want %q", of, got, want)
		}
	}
}
