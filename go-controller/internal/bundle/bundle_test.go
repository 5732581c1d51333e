package bundle

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is added is copied; what is missing or broken is an error that names the file.
func TestCopy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.tgz")
	var raw bytes.Buffer
	w := NewWriter(&raw, time.Unix(1, 0))
	for name, text := range map[string]string{Objects: "{}", "nodes/n1/flows.txt": strings.Repeat("x", 1<<20)} {
		if err := w.Add(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(content []byte) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(raw.Bytes())
	var got bytes.Buffer
	if err := Copy(file, Objects, &got); err != nil || got.String() != "{}" {
		t.Errorf("%s is %q, %v", Objects, &got, err)
	}
	if err := Copy(file, Northbound, &got); !errors.Is(err, ErrNoFile) || !strings.Contains(err.Error(), Northbound) {
		t.Errorf("a file that is not there: %v", err)
	}
	for name, content := range map[string][]byte{"cut": raw.Bytes()[:raw.Len()/2], "no archive": []byte("text"),
		"empty": nil} {
		write(content)
		if err := Copy(file, Northbound, &got); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Copy(file+".none", Objects, &got); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no bundle: %v", err)
	}
}

func TestIs(t *testing.T) {
	for path, want := range map[string]bool{"a.tgz": true, "/x/a.tar.gz": true, "a.yaml": false, "tgz": false,
		"-": false} {
		if Is(path) != want {
			t.Errorf("Is(%q) = %t", path, !want)
		}
	}
}
