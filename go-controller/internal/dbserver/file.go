package dbserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
)

// file is what a database's file on the disk is.
type file struct {
	exists    bool
	clustered bool
	joined    bool   // its server is a member of the cluster, as far as the file knows
	address   string // of the Raft server
	cluster   string // UUID
	server    string // UUID
	others    bool   // its cluster has other servers, as far as the file knows; only read where one server shall be left
}

// inspect looks at a database's file.
func inspect(ctx context.Context, path string) (f file, err error) {
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return file{}, nil
		}
		return file{}, fmt.Errorf("looking at the database's file: %w", err)
	}
	f.exists = true
	var exit *exec.ExitError
	_, err = tool(ctx, "db-is-clustered", path)
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == notTrue:
		return f, nil
	case err != nil:
		return f, err
	}
	f.clustered = true
	for command, into := range map[string]*string{
		"db-local-address": &f.address, "db-cid": &f.cluster, "db-sid": &f.server,
	} {
		if *into, err = tool(ctx, command, path); err != nil {
			return f, err
		}
	}
	f.joined, err = isMember(path, f.server)
	return f, err
}

// notTrue is the exit code of ovsdb-tool's questions whose answer is no.
const notTrue = 2

// tool runs ovsdb-tool(1), and returns what it printed.
func tool(ctx context.Context, args ...string) (string, error) {
	return output(ctx, "ovsdb-tool", args...)
}

// output runs a program and returns what it printed, without the last newline. The error has its messages.
func output(ctx context.Context, name string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", name, strings.Join(args, " "), err,
			strings.TrimSpace(errs.String()))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// Endings of files beside the database's.
const (
	newFile      = ".new"       // one that is being made
	contentsFile = ".contents"  // the contents of a former cluster
	recordedFile = ".recorded"  // the cluster and the server that the Record had
	replacedFile = ".replaced-" // one that another has replaced, and when
)

// keepReplaced is how many files are kept that others have replaced.
const keepReplaced = 3

// replace makes a new file at path. make gets the name to write to. The former file is kept beside it, unless it is
// worthless. path has the former file or the new one at each moment.
func replace(path string, worthless bool, make func(temporary string) error) error {
	temporary := path + newFile
	if err := unlink(temporary); err != nil {
		return err
	}
	if err := make(temporary); err != nil {
		return err
	}
	former := path + replacedFile + time.Now().UTC().Format("20060102T150405.000000000")
	if !worthless {
		if err := os.Link(path, former); err != nil {
			return fmt.Errorf("keeping the former database: %w", err)
		}
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("storing the new database: %w", err)
	}
	if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("storing the new database: %w", err)
	}
	all, err := filepath.Glob(path + replacedFile + "*")
	if err != nil {
		return fmt.Errorf("looking for former databases: %w", err)
	}
	slices.Sort(all)
	for _, old := range all[:max(0, len(all)-keepReplaced)] {
		if err := unlink(old); err != nil {
			return err
		}
	}
	return nil
}

func unlink(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a left-over file: %w", err)
	}
	return nil
}
