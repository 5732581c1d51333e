package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/northbound-net/northbound/test/chaos/ledger"
	"github.com/northbound-net/northbound/test/chaos/plane"
	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/rig"
)

const (
	settleTime = 3 * time.Minute // for everything to be as it should be after a fault, on a busy machine
	// subnets has so few addresses for each node that freed ones are given again soon.
	subnets = "10.128.0.0/16/26,fd01::/48/64"
	// space is what the Northbound database may take on disk.
	space = "size=64m"
)

// world is a cluster's control plane under churn.
type world struct {
	*rig.Rig
	programs      rig.Programs
	master        *rig.Master
	random        *rand.Rand
	ledger        *ledger.Ledger
	churn         *churn
	plane         *plane.Plane
	streams       []*machines.Stream // of packets between pods
	endStreams    []func()
	repliedBefore int64  // of their packets, when they were last looked at
	old           []byte // the Northbound database's file as it was at the beginning
	masters       int
	notes         []string      // what faults found, for the table
	flags         []string      // more flags of masters that start from now on
	away          time.Duration // of the API server
	noQuorum      time.Duration // of the Northbound servers
}

// note remembers a figure for the end of the table.
func (w *world) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// newWorld starts everything, with a master that has seen the first pods.
func newWorld(ctx context.Context, programs rig.Programs, seed uint64) (w *world, err error) {
	w = &world{programs: programs, random: rand.New(rand.NewPCG(seed, 0))}
	if w.Rig, err = rig.New(ctx, programs); err != nil {
		return nil, err
	}
	if err := w.limitSpace(ctx); err != nil {
		return w, err
	}
	if err := load.Nodes(ctx, w.Kube, nodes); err != nil {
		return w, err
	}
	if err := w.makeNamespaces(ctx); err != nil {
		return w, err
	}
	w.ledger = ledger.Follow(ctx, w.Kube)
	w.churn = &churn{kube: w.Kube, objects: w.Objects, random: rand.New(rand.NewPCG(seed, 1))}
	if err := w.startMaster(ctx); err != nil {
		return w, err
	}
	if _, err := w.master.WaitReady(ctx); err != nil {
		return w, err
	}
	if err := w.startPackets(ctx); err != nil {
		return w, err
	}
	w.old, err = os.ReadFile(w.NB.File)
	return w, err
}

// makeNamespaces makes all namespaces, and the networks that stay.
func (w *world) makeNamespaces(ctx context.Context) error {
	if err := load.KnowNetworks(ctx, w.Objects, filepath.Join("..", "..", load.NetworkKinds)); err != nil {
		return err
	}
	return errors.Join(
		load.Namespace(ctx, w.Kube, namespace),
		load.Namespace(ctx, w.Kube, stranger),
		load.Tenant(ctx, w.Kube, w.Objects, red, load.Layer2),
		load.Tenant(ctx, w.Kube, w.Objects, blue, load.Layer3),
		load.Tenant(ctx, w.Kube, w.Objects, green, load.Layer2))
}

// limitSpace moves the Northbound database into a file system of its own, which can be filled.
func (w *world) limitSpace(ctx context.Context) error {
	dir := w.small()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, space); err != nil {
		return fmt.Errorf("mounting a small file system on %s: %w", dir, err)
	}
	db, err := w.StartNorthbound(ctx, "small/nb")
	if err != nil {
		return err
	}
	w.NB = db
	return nil
}

// close ends everything. What newWorld could not start is left out.
func (w *world) close() error {
	for _, end := range w.endStreams {
		end()
	}
	var errs []error
	if w.plane != nil {
		errs = append(errs, w.plane.Close())
	}
	if w.master != nil {
		errs = append(errs, w.master.Kill())
	}
	if w.Rig == nil {
		return errors.Join(errs...)
	}
	errs = append(errs, w.StopNorthbound(w.NB))
	if err := syscall.Unmount(w.small(), syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) &&
		!errors.Is(err, syscall.ENOENT) {
		errs = append(errs, fmt.Errorf("unmounting %s: %w", w.small(), err))
	}
	return errors.Join(append(errs, w.Close())...)
}

// small is the directory with the file system that can be filled.
func (w *world) small() string { return filepath.Join(w.Dir, "small") }

// startMaster starts a master on an address of its own.
func (w *world) startMaster(ctx context.Context) (err error) {
	w.masters++
	w.ledger.Interrupted()
	w.master, err = w.StartMasterAt(ctx, fmt.Sprintf("127.0.0.1:%d", 9500+w.masters%100),
		append([]string{"--leader-elect=false", "--cluster-subnets", subnets}, w.flags...)...)
	return err
}

// pause lets a fault last.
func (w *world) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// eventually waits until nothing is missing. missing is the answer of an attempt.
func (w *world) eventually(ctx context.Context, what string, missing func(context.Context) (string, error)) error {
	var last string
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, settleTime, true,
		func(ctx context.Context) (bool, error) {
			text, err := missing(ctx)
			if err != nil {
				text = err.Error()
			}
			last = cmp.Or(text, last)
			return text == "", nil
		})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w: %s\nthe master: %s", what, err, last, w.master.Tail())
	}
	return nil
}

// nbctl runs ovn-nbctl once, without retries.
func (w *world) nbctl(ctx context.Context, args ...string) (string, error) {
	return w.nbctlOf(ctx, w.NB.Socket, args...)
}

// nbctlOf is nbctl for another server.
func (w *world) nbctlOf(ctx context.Context, socket string, args ...string) (string, error) {
	args = append([]string{"--no-leader-only", "--timeout=5", "--db=unix:" + socket}, args...)
	out, err := exec.CommandContext(ctx, "ovn-nbctl", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running ovn-nbctl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// anyRow is the UUID of a row in a table; "" if there is none. The record of freed addresses is left alone: if it is
// lost together with the master, nobody knows them.
func (w *world) anyRow(ctx context.Context, table string) (string, error) {
	out, err := w.nbctl(ctx, "--bare", "--columns=_uuid", "find", table, "name!=northbound_freed")
	rows := strings.Fields(out)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[w.random.IntN(len(rows))], nil
}

// plan is what `ovnkube plan` would change: "" for nothing.
func (w *world) plan(ctx context.Context) (string, error) { return w.planOf(ctx, "unix:"+w.NB.Socket) }

// planOf is plan for other servers.
func (w *world) planOf(ctx context.Context, nbAddress string) (string, error) {
	out, err := exec.CommandContext(ctx, w.programs.OVNKube, "plan", "--kubeconfig", w.Kubeconfig(), "--nb-address",
		nbAddress, "--cluster-subnets", subnets, "--log-level", "error").CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 2 {
		return string(out), nil
	}
	if err != nil {
		return "", fmt.Errorf("comparing the database with the cluster: %w: %s", err, out)
	}
	return "", nil
}
