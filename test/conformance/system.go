package conformance

import (
	"context"
	"fmt"
	"io"

	"github.com/northbound-net/northbound/test/sandbox"
)

// System is the system from which sandboxes take OVN.
type System struct {
	From string // as sandbox.Options.OVN
	sandbox.System
}

// Provide fetches the system that specs run on: that of from, as in sandbox.Options.OVN. For "", it is the newest, or
// the one of all other tests, with a message, if the newest is unavailable.
func Provide(ctx context.Context, bin, from string, out io.Writer) (System, error) {
	if from != "" {
		return provide(ctx, bin, from, out)
	}
	return newest(ctx, out, func(from string) (System, error) { return provide(ctx, bin, from, out) })
}

// newest fetches the newest system, or the tests' system if that fails.
func newest(ctx context.Context, out io.Writer, get func(from string) (System, error)) (System, error) {
	s, err := get(sandbox.OVNNewest)
	if err == nil || ctx.Err() != nil {
		return s, err
	}
	fmt.Fprintf(out, "The newest OVN is not available, so the specs run with that of the other tests: %v\n", err)
	return get(sandbox.OVNRootfs)
}

func provide(ctx context.Context, bin, from string, out io.Writer) (s System, err error) {
	s.From = from
	if s.System, err = sandbox.Provide(ctx, sandbox.Options{OVN: from, BinDir: bin, Progress: out}); err != nil {
		err = fmt.Errorf("providing OVN from %s: %w", from, err)
	}
	return s, err
}
