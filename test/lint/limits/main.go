// Command limits checks the sizes that a reader can take in: the length of lines
// in hand-written Go and Markdown, of functions, and of files. Directories that
// are listed in pending.txt may exceed them for now.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("want `limits DIRECTORY PENDING-FILE`")
	}
	pending, err := readPending(args[1])
	if err != nil {
		return err
	}
	found, err := check(args[0], pending)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range found {
		errs = append(errs, errors.New(f))
	}
	return errors.Join(errs...)
}

// readPending is the directories of a list; "#" begins a comment.
func readPending(name string) ([]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the list of pending directories: %w", err)
	}
	var dirs []string
	for line := range strings.Lines(string(text)) {
		dir, _, _ := strings.Cut(line, "#")
		if dir = strings.TrimSpace(dir); dir != "" {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// check returns what exceeds a limit below root, and pending directories in
// which nothing does.
func check(root string, pending []string) (found []string, err error) {
	exceeding := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "testdata"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		exceeds, err := checkFile(path, name)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		exceeding[dir] = exceeding[dir] || len(exceeds) > 0
		if !slices.Contains(pending, dir) {
			found = append(found, exceeds...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("checking the sizes of files: %w", err)
	}
	for _, dir := range pending {
		if !exceeding[dir] {
			found = append(found, dir+": nothing there exceeds a limit: remove it from the list of pending directories")
		}
	}
	return found, nil
}
