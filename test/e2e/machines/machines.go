// Package machines is what end-to-end tests that work on the machines of a
// sandbox have in common: bringing one up, running programs on its nodes,
// starting an agent with other flags, kubectl, asking servers, and waiting.
package machines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

const (
	upLimit  = 15 * time.Minute // of bringing the cluster up: it may have to fetch and build
	deadline = 60 * time.Second // of every wait
)

// Up brings a sandbox up, and takes it down when the test ends: then no node's
// switch must have crashed, or dropped a packet for want of recirculations. Its
// name must be one that no other test has.
func Up(t *testing.T, o sandbox.Options) *sandbox.Cluster {
	t.Helper()
	dir, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	o.BinDir, o.Replace, o.Progress = dir, true, os.Stderr
	ctx, cancel := context.WithTimeout(t.Context(), upLimit)
	defer cancel()
	c, err := sandbox.Up(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background() // the test's own has ended
		if err := errors.Join(c.CheckSwitches(ctx), c.Down(ctx)); err != nil {
			t.Error(err)
		}
	})
	return c
}

// RestartAgent starts a node's agent anew, with its flags as before but for
// these, and waits until the node is as it wants it.
func RestartAgent(t *testing.T, n *node.Node, flags ...string) {
	t.Helper()
	services, err := n.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(services, func(s member.ServiceStatus) bool { return s.Name == node.Agent })
	if i < 0 {
		t.Fatalf("%s has no agent: %v", n.Spec.Name, services)
	}
	agent := services[i].Service
	for f := 0; f < len(flags); f += 2 {
		if at := slices.Index(agent.Argv, flags[f]); at >= 0 {
			agent.Argv = slices.Delete(agent.Argv, at, at+2)
		}
	}
	agent.Argv = append(agent.Argv, flags...)
	if err := n.StopService(t.Context(), node.Agent, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := n.StartService(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the agent of "+n.Spec.Name+" is ready", func(ctx context.Context) string {
		if _, err := n.Get(ctx, "http://"+node.AgentMetrics+"/readyz"); err != nil {
			return err.Error()
		}
		return ""
	})
}

// Run is what a program on the node prints, quotes and the blanks around it aside.
func Run(t *testing.T, n *node.Node, argv ...string) string {
	t.Helper()
	out, err := n.Run(t.Context(), argv...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(strings.TrimSpace(out), `"`)
}

// AwaitOutput waits until a program on the node prints want.
func AwaitOutput(t *testing.T, n *node.Node, want string, argv ...string) {
	t.Helper()
	Eventually(t, strings.Join(argv, " ")+" on "+n.Spec.Name, func(ctx context.Context) string {
		out, err := n.Run(ctx, argv...)
		if out = strings.TrimSpace(out); err != nil || out != want {
			return fmt.Sprintf("%v %q, want %q", err, out, want)
		}
		return ""
	})
}

// Eventually waits until ok returns "", and fails the test with what it last
// returned.
func Eventually(t *testing.T, what string, ok func(context.Context) string) {
	t.Helper()
	Within(t, deadline, what, ok)
}

// Within is Eventually for what takes its time.
func Within(t *testing.T, limit time.Duration, what string, ok func(context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		why := ok(ctx)
		if why == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %s", what, why)
		case <-tick.C:
		}
	}
}
