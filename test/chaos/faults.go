package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/process"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// fault is something that breaks, and is whole again when do returns.
type fault struct {
	name string
	do   func(context.Context, *world) error
	// within is how soon after do new pods must be served.
	within time.Duration
	// mayLose is true if packets between pods may be lost: it takes rows away, or denies the packets.
	mayLose bool
}

// A machine at rest takes a tenth of these, at most.
const (
	soon  = 15 * time.Second // the database is read, and compared with the cluster
	later = 30 * time.Second // the API server starts first, and its clients come back
)

// faults lists every fault, in the order of the table.
func faults() []fault {
	return []fault{
		{"master killed", masterKilled, soon, false},
		{"master killed three times while it starts", masterKilledAtStart, soon, false},
		{"master ended with SIGTERM", masterEnded, soon, false},
		{"master stopped, another one starts, the first continues", masterSuperseded, soon, false},
		{"Northbound server killed", northboundKilled, soon, false},
		{"Northbound server stopped for 30 s", northboundStopped, soon, false},
		{"Northbound database emptied", northboundEmptied, soon, true},
		{"Northbound database restored from an old file", northboundRestored, soon, true},
		{"no space left for the Northbound database for 5 s", diskFull, soon, false},
		{"file system of the Northbound database read-only for 5 s", diskReadOnly, soon, false},
		{"two of three Northbound servers killed for 8 or 60 s", northboundWithoutQuorum, soon, false},
		{"follower of three Northbound servers back with an old or an empty file", followerLost, soon, false},
		{"rows deleted and changed by hand", drift, soon, true},
		{"API server killed", apiServerKilled, later, false},
		{"API server stopped for 10 to 15 s", apiServerStopped, later, false},
		{"API server away for 20 or 90 s", apiServerAway, later, false},
		{"API server refuses one kind, or breaks its lists off", kindFails, later, false},
		{"leader's clock is off by hours", clockSkewed, soon, false},
		{"master may open no more files for 5 s", masterWithoutFiles, soon, false},
		{"Northbound server may open no more files for 5 s", northboundWithoutFiles, soon, false},
		{"200 hostile objects beside a limit of memory", hostileBeside, soon, true},
		{"master killed twice for its memory", masterTooLarge, soon, false},
		{"a webhook lets every second pod wait", webhookSlow, soon, false},
	}
}

func masterKilled(ctx context.Context, w *world) error {
	return errors.Join(w.master.Kill(), w.startMaster(ctx))
}

func masterKilledAtStart(ctx context.Context, w *world) error {
	for range 3 {
		if err := masterKilled(ctx, w); err != nil {
			return err
		}
		if err := w.pause(ctx, time.Duration(w.random.IntN(600))*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func masterEnded(ctx context.Context, w *world) error {
	return errors.Join(w.master.Stop(), w.startMaster(ctx))
}

// masterSuperseded has another master take over from one that is stopped. That one must end by itself.
func masterSuperseded(ctx context.Context, w *world) error {
	old := w.master
	if err := old.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if err := w.startMaster(ctx); err != nil {
		return err
	}
	if _, err := w.master.WaitReady(ctx); err != nil {
		return err
	}
	if err := old.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	select {
	case <-old.Done():
	case <-time.After(settleTime):
		return fmt.Errorf("the first master still runs %s after another has taken over: %s", settleTime, old.Tail())
	}
	if code := old.ExitCode(); code != 1 {
		return fmt.Errorf("the first master ended with exit code %d, want 1: %s", code, old.Tail())
	}
	return nil
}

func northboundKilled(ctx context.Context, w *world) error {
	return errors.Join(w.NB.Kill(), w.RunNorthbound(ctx, w.NB))
}

func northboundStopped(ctx context.Context, w *world) error {
	return stopped(ctx, w, w.NB.Process, 30*time.Second)
}

func northboundEmptied(ctx context.Context, w *world) error {
	return errors.Join(w.NB.Kill(), w.EmptyNorthbound(ctx, w.NB), w.RunNorthbound(ctx, w.NB))
}

func northboundRestored(ctx context.Context, w *world) error {
	return errors.Join(w.NB.Kill(), os.WriteFile(w.NB.File, w.old, 0o600), w.RunNorthbound(ctx, w.NB))
}

// diskFull fills the file system of the database. What the server could not write, it refuses. The master logs that.
// The server's own log is on the same file system.
func diskFull(ctx context.Context, w *world) error {
	filler := w.NB.File + ".filler"
	f, err := os.Create(filler)
	if err != nil {
		return fmt.Errorf("filling the file system: %w", err)
	}
	block := make([]byte, 1<<16)
	for err == nil {
		_, err = f.Write(block)
		if errors.Is(err, syscall.ENOSPC) && len(block) > 1 {
			block, err = block[:len(block)/2], nil
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("filling the file system: %w", err)
	}
	err = w.pause(ctx, 5*time.Second)
	return errors.Join(f.Close(), err, w.logged(ctx, w.master.Process, "transaction refused", "I/O error", "write failed"),
		os.Remove(filler))
}

// diskReadOnly has the server end, and what it is on be read-only: it cannot start again until that is over.
func diskReadOnly(ctx context.Context, w *world) error {
	remount := func(flags uintptr) error {
		if err := syscall.Mount("", w.small(), "", syscall.MS_REMOUNT|flags, space); err != nil {
			return fmt.Errorf("mounting %s again: %w", w.small(), err)
		}
		return nil
	}
	if err := errors.Join(w.NB.Kill(), remount(syscall.MS_RDONLY)); err != nil {
		return err
	}
	err := w.RunNorthbound(ctx, w.NB)
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), "read-only") {
		err = fmt.Errorf("the server started on a read-only file system, or did not say why not: %w", err)
	} else {
		err = w.pause(ctx, 5*time.Second)
	}
	return errors.Join(err, w.logged(ctx, w.master.Process, "northbound database not connected"), remount(0),
		w.RunNorthbound(ctx, w.NB))
}

// drift deletes a row of each table, or takes its marks away, as a person with ovn-nbctl would.
func drift(ctx context.Context, w *world) error {
	client, err := ovsdbwire.Dial(w.NB.Socket)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // every answer was read
	port := ""                            // whose row is changed, if there is any
	for _, at := range []struct{ table, parent string }{{"Logical_Switch_Port", "Logical_Switch"}, {"Address_Set", ""},
		{"Logical_Router_Port", "Logical_Router"}, {"Load_Balancer", ""}} {
		row, err := w.anyRow(ctx, at.table)
		if err != nil {
			return err
		}
		if row == "" {
			continue
		}
		if at.table == "Logical_Router_Port" {
			if port, err = w.nbctl(ctx, "get", at.table, row, "name"); err != nil {
				return err
			}
		}
		uuid := []any{"uuid", row}
		here := []any{[]any{"_uuid", "==", uuid}}
		op := map[string]any{"op": "delete", "table": at.table, "where": here}
		switch {
		case w.random.IntN(2) == 0:
			op = map[string]any{"op": "update", "table": at.table, "where": here,
				"row": map[string]any{"external_ids": []any{"map", []any{}}}}
		case at.parent != "":
			// What no row refers to any more, the server deletes.
			op = map[string]any{"op": "mutate", "table": at.parent, "where": []any{},
				"mutations": []any{[]any{"ports", "delete", uuid}}}
		}
		if err := client.Transact(rig.Database, op); err != nil {
			return fmt.Errorf("changing a row of %s: %w", at.table, err)
		}
	}
	if port == "" {
		return nil
	}
	return w.remade(ctx, strings.TrimSpace(port))
}

// remade waits until a router port is there that was deleted, if it was. With OVN 23.03, it then does what
// docs/operate/versions.md says: ovn-controller may keep a flow to the port as it was before.
func (w *world) remade(ctx context.Context, port string) error {
	err := w.eventually(ctx, "router port "+port+" is repaired", func(ctx context.Context) (string, error) {
		found, err := w.nbctl(ctx, "--bare", "--columns=name", "find", "Logical_Router_Port", "name="+port,
			"external_ids!={}")
		if strings.TrimSpace(found) == "" {
			return "it is not there with its marks", err
		}
		return "", err
	})
	if err != nil {
		return err
	}
	if err := w.awaitFlows(ctx); err != nil {
		return err
	}
	return w.plane.RecomputeOld(ctx)
}

func apiServerKilled(ctx context.Context, w *world) error {
	return errors.Join(w.APIServer.Kill(), w.RestartAPIServer(ctx))
}

func apiServerStopped(ctx context.Context, w *world) error {
	return stopped(ctx, w, w.APIServer, 10*time.Second+time.Duration(w.random.IntN(5000))*time.Millisecond)
}

// apiServerAway has nobody listen at the API server's address for longer than a Lease lasts. CHAOS_AWAY is how long.
// The master says meanwhile that it hears of no changes.
func apiServerAway(ctx context.Context, w *world) error {
	if err := errors.Join(w.APIServer.Kill(), w.pause(ctx, w.away)); err != nil {
		return err
	}
	code, text, err := w.master.Readyz(ctx)
	if err == nil && (code == http.StatusOK || !strings.Contains(text, "the watch of")) {
		err = fmt.Errorf("the API server is away, and /readyz is %d: %s", code, text)
	}
	return errors.Join(err, w.RestartAPIServer(ctx))
}

// stopped has a process stand still for a time.
func stopped(ctx context.Context, w *world, p *process.Process, d time.Duration) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return errors.Join(w.pause(ctx, d), p.Signal(syscall.SIGCONT))
}
