package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// Spec describes a member.
type Spec struct {
	Name  string `json:"name"`  // host name and directory name: n1, control
	State string `json:"state"` // directory of the whole sandbox, absolute
	// system whose /usr the member uses: the directory of a root filesystem, or /
	Source  string            `json:"source"`
	Bin     string            `json:"bin"`     // directory of the programs under test, mounted read-only at BinDir
	Sysctls map[string]string `json:"sysctls"` // dotted names, set in the member's network namespace
}

// Directories inside a member.
const (
	BinDir    = "/opt/northbound/bin"
	CNIBinDir = "/opt/cni/bin"
)

// Dir is the member's directory on the host.
func (s Spec) Dir() string { return filepath.Join(s.State, s.Name) }

// LogDir has a file for each service.
func (s Spec) LogDir() string { return filepath.Join(s.Dir(), "log") }

// RunDir is the host's path of the member's /run.
func (s Spec) RunDir() string { return filepath.Join(s.Dir(), "run") }

func (s Spec) specFile() string   { return filepath.Join(s.Dir(), "spec.json") }
func (s Spec) recordFile() string { return filepath.Join(s.Dir(), "init.json") }
func (s Spec) socket() string     { return filepath.Join(s.Dir(), "init.sock") }

// nameForm matches names that are valid for both hosts and directories (RFC 1123).
const nameForm = `^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`

// Validate returns what is wrong with the spec.
func (s Spec) Validate() error {
	if ok, err := regexp.MatchString(nameForm, s.Name); err != nil || !ok {
		return fmt.Errorf("member name %q: want 1 to 32 of a-z, 0-9 and -", s.Name)
	}
	for what, path := range map[string]string{"state": s.State, "source": s.Source, "bin": s.Bin} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%s directory %q of member %s: want an absolute path", what, path, s.Name)
		}
	}
	return nil
}

// record identifies Init's process while the machine runs.
type record struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // field 22 of /proc/PID/stat (proc_pid_stat(5)), clock ticks after boot
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	if err := os.WriteFile(path+".tmp", append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// List returns every recorded member of the sandbox in state, running or not.
func List(state string) ([]*Member, error) {
	entries, err := os.ReadDir(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the sandbox: %w", err)
	}
	var all []*Member
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		m, err := Open(state, e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // not a member, or one that was never started
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}
