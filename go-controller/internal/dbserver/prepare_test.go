package dbserver

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// unreachable is an API server that does not answer.
type unreachable struct{}

var errUnreachable = errors.New("the API server does not answer")

func (unreachable) Nodes(context.Context) ([]string, error) { return nil, errUnreachable }
func (unreachable) Registry(Database) Registry              { return unreachable{} }
func (unreachable) Read(context.Context) (Record, error)    { return Record{}, errUnreachable }
func (unreachable) Update(context.Context, func(*Record) error) error {
	return errUnreachable
}

// prepared is a member whose database has been prepared, without a server.
func prepared(t *testing.T, w *world) Member {
	t.Helper()
	dir := t.TempDir()
	m := Member{Node: "n1", Cluster: w, Log: slog.New(slog.DiscardHandler), Layout: Layout{
		Files: filepath.Join(dir, "files"), Run: filepath.Join(dir, "run"), Schemas: "/usr/share/ovn"}}
	if err := m.Prepare(t.Context(), Databases()[0]); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWithoutAPIServer starts with the recorded file, and with no other, when the API server has not answered for long.
func TestWithoutAPIServer(t *testing.T) {
	d := Databases()[0]
	m := prepared(t, newWorld(t, "n1"))
	m.Cluster = unreachable{}
	for _, k := range []struct {
		name   string
		long   bool
		change func() error
		want   string
	}{
		{"for a moment", false, func() error { return nil }, errUnreachable.Error()},
		{"for long", true, func() error { return nil }, ""},
		{"for long, and another server was recorded last", true, func() error {
			return m.note(d, identity{"c1", "s1", 1})
		}, errUnreachable.Error()},
		{"for long, and nothing is noted", true, func() error {
			return os.Remove(m.Layout.File(d) + recordedFile)
		}, errUnreachable.Error()},
	} {
		if err := k.change(); err != nil {
			t.Fatal(err)
		}
		if why, err := m.tryPrepare(t.Context(), d, k.long); err != nil || why != k.want {
			t.Errorf("%s: %q, %v, want %q", k.name, why, err, k.want)
		}
	}
}

// TestBrokenFile leaves a file alone that cannot be read, and says which.
func TestBrokenFile(t *testing.T) {
	d := Databases()[0]
	for name, text := range map[string]string{
		"no database": "hello\n", "half a record": "OVSDB CLUSTER 1000 0123\n{",
		"a wrong length": "OVSDB CLUSTER 99999999999 0\n{}",
	} {
		m := prepared(t, newWorld(t, "n1"))
		if err := os.WriteFile(m.Layout.File(d), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := m.Prepare(t.Context(), d)
		if err == nil || !strings.Contains(err.Error(), m.Layout.File(d)) {
			t.Errorf("%s: %v, want an error that names the file", name, err)
		}
		if have, err := os.ReadFile(m.Layout.File(d)); err != nil || string(have) != text {
			t.Errorf("%s: the file is %q now, %v", name, have, err)
		}
	}
}

// TestReplace keeps the last files that were replaced, and none that is worthless.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		err := replace(path, i == 5, func(temporary string) error {
			return os.WriteFile(temporary, []byte(strconv.Itoa(i+1)), 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	kept, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, file := range kept { // the present one, and then the others by time
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		have = append(have, string(text))
	}
	if got, want := strings.Join(have, " "), "6 2 3 4"; got != want {
		t.Errorf("the files have %s, want %s", got, want)
	}
	failed := errors.New("no space")
	if err := replace(path, false, func(string) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("replace: %v, want %v", err, failed)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "6" {
		t.Errorf("after a failure the file has %q, %v, want 6", text, err)
	}
}
