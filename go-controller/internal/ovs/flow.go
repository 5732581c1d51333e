package ovs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// ofctl is the program that speaks OpenFlow to bridges.
const ofctl = "ovs-ofctl"

// flowTimeout bounds one run of ofctl. flowSeconds is the limit that ofctl itself gets,
// so that it says what it was waiting for.
const (
	flowTimeout = 6 * time.Second
	flowSeconds = "5"
)

// openFlow14 has bundles, and shows each flow in one form.
const openFlow14 = "--protocols=OpenFlow14"

// Flows reads and writes the flows of this host's bridges.
type Flows struct {
	dir string // where ovs-vswitchd has its sockets; "" for ofctl's default
}

// NewFlows is for the bridges of the Open vSwitch whose database is at address.
// ovs-vswitchd(8) has its sockets beside a unix one. For any other address they are
// where OVS_RUNDIR says, or at the default place.
func NewFlows(address string) *Flows {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return &Flows{filepath.Dir(path)}
	}
	return &Flows{}
}

// target is how ofctl finds the bridge.
func (f *Flows) target(bridge string) string {
	if f.dir == "" {
		return bridge
	}
	return "unix:" + filepath.Join(f.dir, bridge+".mgmt")
}

// Read lists the flows of a bridge that have the cookie.
func (f *Flows) Read(ctx context.Context, bridge string, cookie uint64) ([]hostplan.Flow, error) {
	return f.dump(ctx, bridge, fmt.Sprintf("cookie=%#x/-1", cookie))
}

// dump lists the flows of a bridge that match a filter.
func (f *Flows) dump(ctx context.Context, bridge string, filter ...string) ([]hostplan.Flow, error) {
	out, err := f.run(ctx, "", append([]string{"--no-names", "--no-stats", "dump-flows", f.target(bridge)}, filter...)...)
	if err != nil {
		return nil, fmt.Errorf("reading the flows of bridge %s: %w", bridge, err)
	}
	flows, err := parseFlows(out)
	if err != nil {
		return nil, fmt.Errorf("reading the flows of bridge %s: %w", bridge, err)
	}
	return flows, nil
}

// Converge compares the bridge's flows of want's cookie with want, and sends the
// difference as one bundle (OpenFlow 1.4 section 7.3.9): all or nothing, with no state
// in between. It returns what it changed. It replaces a flow of another cookie only if
// that has the table, priority and match of a wanted one, since a bridge can have but
// one of these. A bridge whose table 0 would be left empty, which drops everything,
// gets back the flow that Open vSwitch had made for it.
func (f *Flows) Converge(ctx context.Context, want hostplan.Flows) ([]Change, error) {
	changes, script, err := f.compare(ctx, want)
	if len(changes) == 0 || err != nil {
		return nil, err
	}
	if _, err := f.run(ctx, script, "--bundle", "add-flows", f.target(want.Bridge), "-"); err != nil {
		return nil, fmt.Errorf("writing %d flows of bridge %s: %w", len(changes), want.Bridge, err)
	}
	have, err := f.Read(ctx, want.Bridge, want.Cookie)
	if err != nil {
		return changes, err
	}
	if left, _ := diffFlows(want, have); len(left) > 0 {
		return changes, fmt.Errorf("writing flows of bridge %s: Open vSwitch took them, and yet %d differ, the first is %q",
			want.Bridge, len(left), left[0])
	}
	return changes, nil
}

// Preview tells what Converge would change.
func (f *Flows) Preview(ctx context.Context, want hostplan.Flows) ([]Change, error) {
	changes, _, err := f.compare(ctx, want)
	return changes, err
}

// ownFlow is the flow of a bridge without a controller, until somebody deletes it
// (ovs-vswitchd.conf.db(5), Bridge.fail_mode, "standalone").
const ownFlow = "table=0,priority=0,actions=NORMAL"

// compare is diffFlows against the bridge's present flows. When the last of the
// cookie's flows goes, it adds the flow that the bridge needs then.
func (f *Flows) compare(ctx context.Context, want hostplan.Flows) ([]Change, string, error) {
	have, err := f.Read(ctx, want.Bridge, want.Cookie)
	if err != nil {
		return nil, "", err
	}
	changes, script := diffFlows(want, have)
	if len(want.List) > 0 || len(have) == 0 {
		return changes, script, nil
	}
	all, err := f.dump(ctx, want.Bridge, "table=0")
	if err != nil {
		return nil, "", err
	}
	ours := slices.DeleteFunc(have, func(h hostplan.Flow) bool { return h.Table != 0 })
	if len(ours) > 0 && len(all) <= len(ours) {
		changes = append(changes, Change{Kind: "flow", Text: fmt.Sprintf("+ flow of %s %s", want.Bridge, ownFlow)})
		script += "add " + ownFlow + "\n"
	}
	return changes, script, nil
}

// Compare is Preview, with the commands that make the changes one by one.
func (f *Flows) Compare(ctx context.Context, want hostplan.Flows) (changes []Change, commands []string, err error) {
	changes, script, err := f.compare(ctx, want)
	for line := range strings.Lines(script) {
		do, flow, _ := strings.Cut(strings.TrimSpace(line), " ")
		command := "add-flow"
		if do != "add" {
			command = "--strict del-flows"
		}
		commands = append(commands, fmt.Sprintf("%s -O OpenFlow14 %s %s '%s'", ofctl, command, want.Bridge, flow))
	}
	return changes, commands, err
}

// CatchAll is the flow of table 0 for packets that no more specific flow matches: of
// those that match everything, the one of the highest priority, with any cookie. ok is
// false when there is none. Such packets are dropped then.
func (f *Flows) CatchAll(ctx context.Context, bridge string) (flow hostplan.Flow, ok bool, err error) {
	all, err := f.dump(ctx, bridge, "table=0")
	if err != nil {
		return flow, false, err
	}
	for _, a := range all {
		if a.Match == "" && (!ok || a.Priority > flow.Priority) {
			flow, ok = a, true
		}
	}
	flow.Actions, _, _ = strings.Cut(flow.Actions, " ") // without its timeouts and flags
	return flow, ok, nil
}

// run runs ofctl with stdin as its input and returns its output.
func (f *Flows) run(ctx context.Context, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, flowTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, ofctl, append([]string{openFlow14, "--timeout=" + flowSeconds}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.WaitDelay = time.Second
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	switch err := cmd.Run(); {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s is not in PATH: install openvswitch-switch", ofctl)
	case ctx.Err() != nil:
		return "", fmt.Errorf("running %s: %w: does ovs-vswitchd run?", ofctl, ctx.Err())
	case err != nil:
		return "", fmt.Errorf("running %s: %w: %s", ofctl, err, firstLines(complaint.String()))
	}
	return out.String(), nil
}

// firstLines shortens a program's error output.
func firstLines(s string) string {
	const most = 400
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = s[:most] + "..."
	}
	return s
}
