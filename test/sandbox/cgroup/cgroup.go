package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type hierarchy struct {
	dir     string
	version int
}

// hierarchies reads them from /proc/self/mountinfo (proc_pid_mountinfo(5)).
func hierarchies() ([]hierarchy, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing the cgroup hierarchies: %w", err)
	}
	defer f.Close()
	var all []hierarchy
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) < 5 || len(right) < 1 {
			continue
		}
		switch right[0] {
		case "cgroup":
			all = append(all, hierarchy{left[4], 1})
		case "cgroup2":
			all = append(all, hierarchy{left[4], 2})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("listing the cgroup hierarchies: %w", err)
	}
	return all, nil
}

// Make makes the group in every hierarchy, ready for child groups.
func Make(name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		dir := filepath.Join(h.dir, name)
		if h.version == 2 {
			if err := delegate(h.dir); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making control group %s: %w", dir, err)
		}
		if h.version == 2 {
			err = delegate(dir)
		} else {
			err = inherit(h.dir, dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// MakeV2 makes the group in the hierarchy of version 2 alone, without controllers, and returns its directory.
func MakeV2(name string) (dir string, err error) {
	all, err := hierarchies()
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(all, func(h hierarchy) bool { return h.version == 2 })
	if i < 0 {
		return "", errors.New("making control group " + name + ": no cgroup2 file system is mounted")
	}
	dir = filepath.Join(all[i].dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making control group %s: %w", dir, err)
	}
	return dir, nil
}

// delegate enables dir's controllers for its children.
func delegate(dir string) error {
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("reading the controllers of %s: %w", dir, err)
	}
	for _, c := range strings.Fields(string(have)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644); err != nil {
			return fmt.Errorf("enabling controller %s below %s: %w", c, dir, err)
		}
	}
	return nil
}

// inherit copies the settings that a version 1 cpuset does not inherit by itself.
func inherit(parent, dir string) error {
	for _, file := range []string{"cpuset.mems", "cpuset.cpus"} {
		b, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), b, 0o644)
		}
		if err != nil {
			return fmt.Errorf("setting %s of %s: %w", file, dir, err)
		}
	}
	return nil
}

// Remove removes the group and its child groups. Their processes must already be ending: it waits for them until ctx
// ends.
func Remove(ctx context.Context, name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		dir := filepath.Join(h.dir, name)
		for {
			err := removeTree(dir)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("removing control group %s: %w", dir, err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// removeTree removes directories, the deepest first. Their files vanish with them.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
