package cniconf

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The runtime takes the first file by name that is a configuration.
func TestMultusFirst(t *testing.T) {
	const ours = `{"name": "ovn-kubernetes", "plugins": [{"type": "ovn_cni"}, {"type": "portmap"}]}`
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"no file":         {},
		"ours alone":      {map[string]string{"10-ovn.conflist": ours}, false},
		"the plugin":      {map[string]string{"00-multus.conf": `{"type": "multus"}`, "10-ovn.conflist": ours}, true},
		"the shim":        {map[string]string{"00-multus.conf": `{"type": "multus-shim"}`, "10-ovn.conflist": ours}, true},
		"in a list":       {map[string]string{"00.conflist": `{"plugins": [{"type": "multus"}]}`, "10.conflist": ours}, true},
		"behind ours":     {map[string]string{"99-multus.conf": `{"type": "multus"}`, "10-ovn.conflist": ours}, false},
		"another":         {map[string]string{"05-other.conf": `{"type": "bridge"}`, "06.conf": `{"type": "multus"}`}, false},
		"a broken file":   {map[string]string{"00.conf": "{", "01.conf": `{}`, "05.conf": `{"type": "multus"}`}, true},
		"no such suffix":  {map[string]string{"00-multus.conf.off": `{"type": "multus"}`, "10-ovn.conflist": ours}, false},
		"another's chain": {map[string]string{"00.conflist": `{"plugins": [{"type": "a"}, {"type": "multus"}]}`}, false},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(dir, "00-directory.conf"), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := MultusFirst(dir); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A directory that is not there has no files, and one that can't be read is an error.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"b.conf", "a.json", "c.txt"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Files(dir); err != nil || !slices.Equal(got, []string{"a.json", "b.conf"}) {
		t.Errorf("files %v, %v", got, err)
	}
	if got, err := Files(filepath.Join(dir, "none")); err != nil || got != nil {
		t.Errorf("no directory: files %v, %v", got, err)
	}
	if _, err := Files(filepath.Join(dir, "a.json")); err == nil || MultusFirst(filepath.Join(dir, "a.json")) {
		t.Error("a file that is no directory: no error")
	}
}
