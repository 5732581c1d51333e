package collect

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// source makes what the builds would have made.
func source(t *testing.T) Source {
	t.Helper()
	s := Source{Bin: t.TempDir(), Version: "v1.2.3", Architecture: "amd64"}
	s.Changelog = filepath.Join(s.Bin, "changelog.md")
	s.Alerts, s.Dashboard = filepath.Join(s.Bin, "alerts.yaml"), filepath.Join(s.Bin, "dashboard.json")
	for name, text := range map[string]string{
		"chart/Chart.yaml": "version: 1.2.3\nappVersion: v1.2.3\n", "changelog.md": "# Changes\n\n## v1.2.3\n",
		"northbound-v1.2.3.oci.tar": "image", "northbound-v1.2.3.cdx.json": "{}", "northbound-1.2.3.tgz": "chart",
		"northbound-1.2.3.yaml": "manifest", "northbound_1.2.3_amd64.deb": "package",
		"plugin/linux-amd64/kubectl-northbound": "elf", "plugin/windows-arm64/kubectl-northbound.exe": "exe",
		"northbound-v1.2.2.oci.tar": "an earlier one", "alerts.yaml": "groups: []", "dashboard.json": "{}",
	} {
		file := filepath.Join(s.Bin, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// All files of the version are there, and sha256sum finds them as they should be.
func TestInto(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "release")
	names, err := source(t).Into(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"CHANGELOG.md", "kubectl-northbound-v1.2.3-linux-amd64",
		"kubectl-northbound-v1.2.3-windows-arm64.exe", "northbound-1.2.3-alerts.yaml", "northbound-1.2.3-dashboard.json",
		"northbound-1.2.3.tgz", "northbound-1.2.3.yaml",
		"northbound-v1.2.3.cdx.json", "northbound-v1.2.3.oci.tar", "northbound_1.2.3_amd64.deb", "SHA256SUMS"}
	if !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", Sums)
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != len(want)-1 {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
	if info, err := os.Stat(filepath.Join(dir, want[1])); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("the plugin cannot be executed: %v, %v", info, err)
	}
}

// What is missing, old or not described makes no release.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, s *Source) error
		want   string
	}{
		{"chart of another version", func(_ *testing.T, s *Source) error { s.Version = "v1.2.4"; return nil },
			"is of version v1.2.3, the programs are v1.2.4"},
		{"no package", func(_ *testing.T, s *Source) error {
			return os.Remove(filepath.Join(s.Bin, "northbound_1.2.3_amd64.deb"))
		}, "northbound_1.2.3_amd64.deb: no such file"},
		{"no plugins", func(_ *testing.T, s *Source) error { return os.RemoveAll(filepath.Join(s.Bin, "plugin")) },
			"`make plugin` makes them"},
		{"no heading", func(_ *testing.T, s *Source) error {
			return os.WriteFile(s.Changelog, []byte("# Changes\n\n## Unreleased\n"), 0o600)
		}, `no heading "## v1.2.3"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := source(t)
			if err := c.change(t, &s); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Into(filepath.Join(t.TempDir(), "release")); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := source(t).Into(full); err == nil || !strings.Contains(err.Error(), "want an empty one") {
		t.Errorf("error %v", err)
	}
}
