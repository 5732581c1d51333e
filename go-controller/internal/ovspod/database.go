package ovspod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Database is the server of the Open_vSwitch database.
type Database struct {
	Layout
	Log *slog.Logger
}

// Run makes the database's file if it is missing, upgrades its schema, and runs ovsdb-server until ctx ends. It starts
// the server again when it dies, unless it dies at once. A database that was made here and has no bridge any more is
// then removed: `ovnkube cleanup node` has removed the bridges.
func (d Database) Run(ctx context.Context) error {
	if d.databaseAnswers() {
		return ErrHostRuns
	}
	return keepRunning(ctx, d.Log, "ovsdb-server", d.once)
}

// once runs ovsdb-server until it or ctx ends.
func (d Database) once(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- d.daemon(serving, "ovsdb-server", d.File, "--remote=punix:"+d.socket())
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	d.outlive(serving)
	unused, err := d.unused(serving)
	if err != nil {
		d.Log.Warn("looking whether the database is used failed: it stays", "error", err)
	}
	stop()
	if err := <-ended; err != nil || !unused {
		return err
	}
	d.Log.Info("the database has no bridge: it is removed", "file", d.File)
	return d.remove()
}

// outlive waits for the end of ovs-vswitchd. Without the database, ovs-vswitchd stands still: it neither answers, so
// that its flows could be saved, nor handles packets in the userspace datapath.
func (d Database) outlive(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, outliveTimeout)
	defer cancel()
	for d.switchAnswers(ctx) {
		if err := pause(ctx, lookAgain); err != nil {
			d.Log.Warn("ovs-vswitchd has not ended: the database ends before it")
			return
		}
	}
}

// prepare has the database's file exist, with the schema of this version.
func (d Database) prepare(ctx context.Context) error {
	if err := os.MkdirAll(d.Sockets, 0o755); err != nil {
		return fmt.Errorf("making the directory of sockets: %w", err)
	}
	if !exists(d.File) {
		return d.create(ctx)
	}
	needs, err := d.tool(ctx, "ovsdb-tool", "needs-conversion", d.File, d.Schema)
	if err != nil || needs != "yes" {
		return err
	}
	version, err := d.tool(ctx, "ovsdb-tool", "db-version", d.File)
	if err != nil {
		return err
	}
	d.Log.Info("converting the database to this version's schema", "file", d.File, "version", version)
	// As ovs-ctl(8) does. A newer schema's columns are lost when the version goes back; the copy has them.
	former := d.File + ".backup" + version
	if _, err := d.tool(ctx, "cp", "--", d.File, former); err != nil {
		return err
	}
	_, err = d.tool(ctx, "ovsdb-tool", "convert", d.File, d.Schema)
	return err
}

// create makes a database with the one row that other programs expect, marked as ours.
func (d Database) create(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(d.File), 0o755); err != nil {
		return fmt.Errorf("making the directory of the database: %w", err)
	}
	d.Log.Info("creating the database", "file", d.File)
	made := d.File + ".new"
	if err := removeFile(made); err != nil {
		return err
	}
	if _, err := d.tool(ctx, "ovsdb-tool", "create", made, d.Schema); err != nil {
		return err
	}
	row := fmt.Sprintf(`["Open_vSwitch",{"op":"insert","table":"Open_vSwitch","row":`+
		`{"external_ids":["map",[[%q,"true"]]]}}]`, names.OVSMadeInPod)
	if _, err := d.tool(ctx, "ovsdb-tool", "transact", made, row); err != nil {
		return err
	}
	if err := os.Rename(made, d.File); err != nil {
		return fmt.Errorf("storing the new database: %w", err)
	}
	return removeFile(lockFile(made))
}

// unused tells whether the database was made here and has no bridge.
func (d Database) unused(ctx context.Context) (bool, error) {
	made, err := d.vsctl(ctx, "--if-exists", "get", "Open_vSwitch", ".", "external_ids:"+names.OVSMadeInPod)
	if err != nil || made == "" {
		return false, err
	}
	bridges, err := d.vsctl(ctx, "list-br")
	return bridges == "", err
}

// remove removes the database, with what was kept of its former versions, and what daemons that were killed have left.
func (d Database) remove() error {
	all, errs := []string{d.File, lockFile(d.File), d.socket()}, []error{}
	for _, pattern := range []string{
		d.File + ".backup*", filepath.Join(d.Sockets, "ovs-vswitchd.*"), filepath.Join(d.Sockets, "ovsdb-server.*"),
	} {
		found, err := filepath.Glob(pattern)
		all, errs = append(all, found...), append(errs, err)
	}
	for _, file := range all {
		errs = append(errs, removeFile(file))
	}
	return errors.Join(append(errs, os.RemoveAll(d.saved()))...)
}

// lockFile is what ovsdb-server locks in the place of a database.
func lockFile(database string) string {
	return filepath.Join(filepath.Dir(database), "."+filepath.Base(database)+".~lock~")
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a file of the database: %w", err)
	}
	return nil
}
