package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

// Write sets contents and mode. It leaves no temporary file behind, not even when it fails.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, contents := range []string{"one", "another", ""} {
		if err := Write(path, []byte(contents), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(got) != contents || info.Mode() != 0o640 {
			t.Errorf("%q, %v, %v, %v; want %q with mode 0640", got, err, info, statErr, contents)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "d"), []byte("x"), 0o644); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if err := Write(filepath.Join(dir, "nosuch", "f"), nil, 0o644); err == nil {
		t.Error("a file was written where there is no directory")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v, %v; want f and d alone", left, err)
	}
}
