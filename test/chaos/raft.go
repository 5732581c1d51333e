package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/test/scale/process"
	"github.com/northbound-net/northbound/test/scale/rig"
)

const (
	raftServers   = 3
	firstRaftPort = 6651
)

// raft is a cluster of Northbound servers that has taken the place of the only one.
type raft struct {
	*world
	dir     string
	servers []*rig.Northbound
}

// onRaft has a cluster of servers go on with the database, another master use it, and something happen to it. Then the
// only server goes on with what the cluster has.
func onRaft(ctx context.Context, w *world, happen func(context.Context, *raft) error) (err error) {
	dir := filepath.Join(w.Dir, "raft")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory for servers: %w", err)
	}
	r := &raft{world: w, dir: dir}
	defer func() {
		for _, s := range r.servers {
			if s.Process != nil {
				err = errors.Join(err, s.Kill())
			}
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	if err := errors.Join(w.master.Kill(), w.NB.Kill()); err != nil {
		return err
	}
	for i := range raftServers {
		r.servers = append(r.servers, &rig.Northbound{Socket: r.path(i, "sock"), File: r.path(i, "db")})
		contents := []string{"join-cluster", r.path(i, "db"), rig.Database, address(i), address(0)}
		if i == 0 {
			contents = []string{"create-cluster", r.path(i, "db"), w.NB.File, address(i)}
		}
		if err := errors.Join(run(ctx, "ovsdb-tool", contents...), r.start(ctx, i)); err != nil {
			return err
		}
	}
	w.flags = []string{"--nb-address", r.sockets()}
	if err := errors.Join(w.startMaster(ctx), w.plane.Follow(r.sockets())); err != nil {
		return err
	}
	if _, err := w.master.WaitReady(ctx); err != nil {
		return err
	}
	if err := happen(ctx, r); err != nil {
		return err
	}
	if err := r.inOrder(ctx); err != nil {
		return err
	}
	w.flags = nil
	return r.end(ctx)
}

// end gives the database to the only server again.
func (r *raft) end(ctx context.Context) error {
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	if err := r.master.Kill(); err != nil {
		return err
	}
	for _, s := range r.servers {
		if err := s.Kill(); err != nil {
			return err
		}
	}
	if err := os.Remove(r.NB.File); err != nil {
		return fmt.Errorf("replacing the database of the only server: %w", err)
	}
	return errors.Join(run(ctx, "ovsdb-tool", "cluster-to-standalone", r.NB.File, r.servers[leader].File),
		r.RunNorthbound(ctx, r.NB), r.startMaster(ctx), r.plane.Follow("unix:"+r.NB.Socket))
}

func (r *raft) path(i int, ending string) string {
	return filepath.Join(r.dir, fmt.Sprintf("nb%d.%s", i, ending))
}

func address(i int) string { return fmt.Sprintf("tcp:127.0.0.1:%d", firstRaftPort+i) }

func (r *raft) sockets() string {
	var all []string
	for _, s := range r.servers {
		all = append(all, "unix:"+s.Socket)
	}
	return strings.Join(all, ",")
}

// start runs a server, and waits until it works with the others.
func (r *raft) start(ctx context.Context, i int) error {
	return errors.Join(r.RunNorthbound(ctx, r.servers[i]), r.joined(ctx, i))
}

func (r *raft) joined(ctx context.Context, i int) error {
	return r.eventually(ctx, "a Northbound server has joined its cluster", func(ctx context.Context) (string, error) {
		out, err := r.status(ctx, i)
		if err != nil || !strings.Contains(out, "Status: cluster member") || !strings.Contains(out, "Leader: ") ||
			strings.Contains(out, "Leader: unknown") {
			return "not yet: " + out, err
		}
		return "", nil
	})
}

func (r *raft) status(ctx context.Context, i int) (string, error) {
	out, err := exec.CommandContext(ctx, "ovs-appctl", "--timeout=2", "-t", r.path(i, "ctl"), "cluster/status",
		rig.Database).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("asking a Northbound server: %w: %s", err, out)
	}
	return string(out), nil
}

// leader is the index of the server that leads. Servers that do not run are asked, too.
func (r *raft) leader(ctx context.Context) (leader int, err error) {
	err = r.eventually(ctx, "a Northbound server leads", func(ctx context.Context) (string, error) {
		for i := range r.servers {
			if out, err := r.status(ctx, i); err == nil && strings.Contains(out, "Role: leader") {
				leader = i
				return "", nil
			}
		}
		return "none leads", nil
	})
	return leader, err
}

// inOrder waits, while nothing changes, until the cluster has what it should have, each server the same.
func (r *raft) inOrder(ctx context.Context) error {
	r.churn.still.Store(true)
	defer r.churn.still.Store(false)
	if err := r.eventually(ctx, "a cluster of servers has what it should have", func(ctx context.Context) (string, error) {
		if waiting, err := r.churn.waiting(ctx); err != nil || len(waiting) > 0 {
			return fmt.Sprintf("no addresses: %v", waiting), err
		}
		return r.planOf(ctx, r.sockets())
	}); err != nil {
		return err
	}
	return r.eventually(ctx, "each server has the same", func(ctx context.Context) (string, error) {
		var ports []string
		for _, s := range r.servers {
			out, err := r.nbctlOf(ctx, s.Socket, "--bare", "--columns=name", "list", "logical_switch_port")
			if err != nil {
				return "", err
			}
			names := strings.Fields(out)
			slices.Sort(names)
			ports = append(ports, strings.Join(names, " "))
		}
		if ports[0] == "" || len(slices.Compact(ports)) > 1 {
			return "ports differ, or there are none", nil
		}
		return "", nil
	})
}

// northboundWithoutQuorum kills the leader and another of three servers. CHAOS_QUORUM is how long they are away.
func northboundWithoutQuorum(ctx context.Context, w *world) error {
	return onRaft(ctx, w, func(ctx context.Context, r *raft) error {
		first, err := r.leader(ctx)
		if err != nil {
			return err
		}
		second := (first + 1 + r.random.IntN(raftServers-1)) % raftServers
		if err := errors.Join(r.servers[first].Kill(), r.servers[second].Kill()); err != nil {
			return err
		}
		if err := r.pause(ctx, r.noQuorum); err != nil {
			return err
		}
		code, text, err := r.master.Readyz(ctx)
		if err != nil {
			return err
		}
		if code == http.StatusOK || !strings.Contains(text, "northbound") && !strings.Contains(text, "Northbound") {
			return fmt.Errorf("no quorum, and /readyz is %d: %s", code, text)
		}
		// Neither can work before the other runs.
		return errors.Join(r.RunNorthbound(ctx, r.servers[first]), r.RunNorthbound(ctx, r.servers[second]),
			r.joined(ctx, first), r.joined(ctx, second))
	})
}

// followerLost kills a follower, which comes back with an old file of its own, and then with a new file, after the
// others have given the old server up. Pods are served meanwhile.
func followerLost(ctx context.Context, w *world) error {
	return onRaft(ctx, w, func(ctx context.Context, r *raft) error {
		leader, err := r.leader(ctx)
		if err != nil {
			return err
		}
		i := (leader + 1 + r.random.IntN(raftServers-1)) % raftServers
		if err := r.servers[i].Kill(); err != nil {
			return err
		}
		old, err := os.ReadFile(r.servers[i].File)
		if err != nil {
			return fmt.Errorf("reading the file of a server: %w", err)
		}
		if err := errors.Join(r.start(ctx, i), r.pause(ctx, lasting/2), r.servers[i].Kill()); err != nil {
			return err
		}
		if err := r.eventually(ctx, "a pod is served without a follower", r.newPodMeanwhile()); err != nil {
			return err
		}
		if err := os.WriteFile(r.servers[i].File, old, 0o600); err != nil {
			return fmt.Errorf("restoring the file of a server: %w", err)
		}
		if err := errors.Join(r.start(ctx, i), r.inOrder(ctx), r.servers[i].Kill()); err != nil {
			return err
		}
		if leader, err = r.leader(ctx); err != nil {
			return err
		}
		if err := errors.Join(os.Remove(r.servers[i].File), run(ctx, "ovs-appctl", "--timeout=10", "-t",
			r.path(leader, "ctl"), "cluster/kick", rig.Database, address(i))); err != nil {
			return err
		}
		return errors.Join(run(ctx, "ovsdb-tool", "join-cluster", r.servers[i].File, rig.Database, address(i),
			address(leader)), r.start(ctx, i))
	})
}

// run is a command that must succeed.
func run(ctx context.Context, program string, args ...string) error {
	path, err := process.Find(program, "openvswitch-common")
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, path, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("running %s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return nil
}
