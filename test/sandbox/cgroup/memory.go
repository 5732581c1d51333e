package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory is a control group of processes that may have only so much memory together.
type Memory struct {
	name, dir string
	version   int
}

// NewMemory makes a group below one of the given name. Remove removes both.
func NewMemory(name string) (*Memory, error) {
	if err := Make(name); err != nil {
		return nil, err
	}
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	for _, h := range all {
		m := &Memory{name: name, dir: filepath.Join(h.dir, name, "limited"), version: h.version}
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return nil, fmt.Errorf("making control group %s: %w", m.dir, err)
		}
		if _, err := os.Stat(m.file("memory.limit_in_bytes", "memory.max")); err == nil {
			return m, nil
		}
	}
	return nil, errors.Join(errors.New("this machine's control groups do not limit memory"),
		Remove(context.Background(), name))
}

// file is the path of a file, whose name depends on the version.
func (m *Memory) file(v1, v2 string) string {
	if m.version == 1 {
		return filepath.Join(m.dir, v1)
	}
	return filepath.Join(m.dir, v2)
}

// Limit sets how much memory the processes may have, in bytes. With version 1 it is an error if they have more.
func (m *Memory) Limit(bytes int64) error {
	path := m.file("memory.limit_in_bytes", "memory.max")
	if err := os.WriteFile(path, []byte(strconv.FormatInt(bytes, 10)), 0o644); err != nil {
		return fmt.Errorf("limiting memory: %w", err)
	}
	return nil
}

// Procs is the file that takes the process id of whoever is to be in the group. "0" is the writer.
func (m *Memory) Procs() string { return filepath.Join(m.dir, "cgroup.procs") }

// Peak is the most that the processes have ever had, in bytes.
func (m *Memory) Peak() (int64, error) {
	text, err := os.ReadFile(m.file("memory.max_usage_in_bytes", "memory.peak"))
	if err != nil {
		return 0, fmt.Errorf("reading the use of memory: %w", err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// Killed is how many processes the kernel has killed for their memory.
func (m *Memory) Killed() (n int, err error) {
	text, err := os.ReadFile(m.file("memory.oom_control", "memory.events"))
	if err != nil {
		return 0, fmt.Errorf("reading what was killed for its memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strconv.Atoi(strings.TrimSpace(count))
		}
	}
	return 0, fmt.Errorf("reading what was killed for its memory: no count in %q", text)
}

// Remove removes the group. Processes that are still there move to the top of the hierarchy.
func (m *Memory) Remove(ctx context.Context) error {
	top := filepath.Join(filepath.Dir(filepath.Dir(m.dir)), "cgroup.procs")
	if text, err := os.ReadFile(m.Procs()); err == nil {
		for _, pid := range strings.Fields(string(text)) {
			_ = os.WriteFile(top, []byte(pid), 0o644) // it may have ended: else removing fails
		}
	}
	return Remove(ctx, m.name)
}
