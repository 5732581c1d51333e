// Package machines has the common parts of end-to-end tests that work on the machines of a sandbox: starting one,
// running programs on its nodes, restarting an agent with other flags, kubectl, asking servers, and waiting.
package machines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

const (
	upLimit  = 15 * time.Minute // for starting the cluster, which may download and build
	deadline = 2 * time.Minute  // of every wait
	// Between two looks. Most conditions hold soon.
	firstPause, longestPause = 5 * time.Millisecond, 100 * time.Millisecond
	// rest is how many times as long as a look the pause after it is, at least, up to longestRest: on a busy machine a
	// look takes long, and what is awaited needs the processors, too.
	rest, longestRest = 2, time.Second
)

// Up starts a sandbox, and takes it down when the test ends. By then, no node's switch may have crashed or dropped a
// packet for lack of recirculations, and ovnkube may not have asked the API server for what its roles do not give. No
// other test may have the same name.
func Up(t *testing.T, o sandbox.Options) *sandbox.Cluster {
	t.Helper()
	return UpWith(t, o, CheckRights)
}

// UpWith is Up with other checks of what ovnkube asked the API server for, when the test ends.
func UpWith(t *testing.T, o sandbox.Options, checks ...func(*sandbox.Cluster) error) *sandbox.Cluster {
	t.Helper()
	if o.BinDir == "" {
		dir, err := filepath.Abs("../../../bin")
		if err != nil {
			t.Fatal(err)
		}
		o.BinDir = dir
	}
	o.Replace, o.Progress, o.Audit = true, os.Stderr, true
	ctx, cancel := context.WithTimeout(t.Context(), upLimit)
	defer cancel()
	c, err := sandbox.Up(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	recirculations := c.WatchRecirculations(t.Context())
	t.Cleanup(func() {
		ctx := context.Background() // the test's context has ended
		errs := []error{c.CheckSwitches(ctx), recirculations.Err()}
		for _, check := range checks {
			errs = append(errs, check(c))
		}
		if t.Failed() {
			errs = append(errs, c.CheckFollowed(ctx))
		}
		if err := errors.Join(append(errs, c.Down(ctx))...); err != nil {
			t.Error(err)
		}
	})
	return c
}

// CheckRights returns an error if a request of ovnkube was refused for lack of rights.
func CheckRights(c *sandbox.Cluster) error {
	_, refused, err := c.Control.Audited()
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("requests of ovnkube were refused with status 403: %v", refused)
	}
	return err
}

// Run returns the output of a program on the node, without quotes and surrounding white space.
func Run(t *testing.T, n *node.Node, argv ...string) string {
	t.Helper()
	out, err := n.Run(t.Context(), argv...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
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

// Eventually waits until ok returns "", or fails the test with what it returned last. An ok that says what it got, and
// not what is wrong with it, returns "got " and that: an empty answer is no success.
func Eventually(t *testing.T, what string, ok func(context.Context) string) {
	t.Helper()
	Within(t, deadline, what, ok)
}

// AtOnce asks all at once, and returns what is wrong of each, or "". Where no answer is right, each waits for one.
func AtOnce(checks ...func() string) string {
	wrong := make([]string, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() { wrong[i] = check() })
	}
	all.Wait()
	return strings.Join(slices.DeleteFunc(wrong, func(s string) bool { return s == "" }), "\n")
}

// Within is Eventually with a longer deadline.
func Within(t *testing.T, limit time.Duration, what string, ok func(context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		began := time.Now()
		why := ok(ctx)
		if why == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %s", what, why)
		case <-time.After(max(pause, min(rest*time.Since(began), longestRest))):
		}
	}
}
