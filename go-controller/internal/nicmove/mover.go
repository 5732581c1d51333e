package nicmove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// How long one step may take, and how often the host is compared again: the kernel makes some changes by itself, and
// not at once.
const (
	stepTimeout   = 10 * time.Second
	maxPasses     = 5
	passPause     = 200 * time.Millisecond
	settlePause   = 10 * time.Millisecond
	settleTimeout = 5 * time.Second
)

// Mover moves NICs of the network namespace that it was made in.
type Mover struct {
	OVS      *ovs.DB
	Kernel   *hostnet.Netlink
	Store    Store
	Out      io.Writer             // gets a line for each step
	Step     func(number int)      // called before each step, which are numbered from 1; may be nil
	Guard    func(u Undo) []string // returns the command line of a watchdog for the undo file
	Now      func() time.Time
	steps    int       // executed so far
	ovsStuck bool      // ovs-vswitchd did not apply a change in time
	watchdog *Watchdog // nil if there is none
}

func (m *Mover) say(format string, args ...any) { fmt.Fprintf(m.Out, format+"\n", args...) }

// read reads the host's state that plans are compared with.
func (m *Mover) read(ctx context.Context, nic, bridge string) (nicmove.Host, error) {
	h, err := m.readKernel(nic, bridge)
	if err != nil {
		return h, err
	}
	return h, m.readOVS(ctx, &h, nic, bridge)
}

func (m *Mover) readKernel(nic, bridge string) (h nicmove.Host, err error) {
	if h.NIC, err = m.Kernel.NIC(nic); err != nil {
		return h, err
	}
	if h.Bridge, err = m.Kernel.NIC(bridge); err != nil {
		return h, err
	}
	h.Defaults, err = m.Kernel.ConfDefaults()
	return h, err
}

func (m *Mover) readOVS(ctx context.Context, h *nicmove.Host, nic, bridge string) (err error) {
	if !m.OVS.Connected() {
		return errors.New("the Open vSwitch database does not answer: is ovsdb-server running?")
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if h.Row, err = m.OVS.Uplink(ctx, bridge); err != nil {
		return err
	}
	h.PortOn, _, err = m.OVS.UplinkOf(ctx, nic)
	return err
}

// converge executes the steps that plan returns until it returns none. With keepGoing, a step that fails does not stop
// the others.
func (m *Mover) converge(ctx context.Context, plan func() ([]nicmove.Step, error), keepGoing bool) error {
	var failed []error
	for pass := range maxPasses {
		if pass > 1 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(passPause):
			}
		}
		steps, err := plan()
		if err != nil {
			return err
		}
		if len(steps) == 0 {
			return nil
		}
		failed = nil
		for _, s := range steps {
			if err := m.apply(ctx, s); err != nil {
				err = fmt.Errorf("applying %q: %w", s, err)
				if !keepGoing {
					return err
				}
				failed = append(failed, err)
			}
		}
	}
	steps, err := plan()
	if err != nil || len(steps) == 0 {
		return err
	}
	var lines []string
	for _, s := range steps {
		lines = append(lines, s.String())
	}
	rest := fmt.Errorf("after %d attempts these steps are left: %s", maxPasses, strings.Join(lines, "; "))
	return errors.Join(append(failed, rest)...)
}

func (m *Mover) apply(ctx context.Context, s nicmove.Step) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	m.watchdog.beat()
	m.steps++
	if m.Step != nil {
		m.Step(m.steps)
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	var err error
	switch s.Thing().(type) {
	case nicmove.Bridge, nicmove.Port:
		err = m.applyOVS(ctx, s)
	default:
		err = m.Kernel.Carry(s)
	}
	if err == nil {
		m.say("%s", s)
	}
	return err
}

// applyOVS applies a step to Open vSwitch, and waits for ovs-vswitchd unless that was in vain before.
func (m *Mover) applyOVS(ctx context.Context, s nicmove.Step) error {
	if err := m.OVS.Carry(ctx, s); err != nil || m.ovsStuck {
		return err
	}
	if err := m.running(ctx); err != nil {
		m.ovsStuck = true
		return err
	}
	if p, ok := s.Want.(nicmove.Port); ok {
		return m.OVS.Opened(ctx, p)
	}
	return nil
}

// running makes sure that ovs-vswitchd runs and has applied all changes.
func (m *Mover) running(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return m.OVS.Settle(ctx)
}

// guard writes the undo file and starts the watchdog, before the first change. If that fails, it restores the file to
// its earlier state was, or removes it if that is "".
func (m *Mover) guard(was State, u *Undo, state State) error {
	u.State, u.Session = state, fmt.Sprint(m.Now().UnixNano())
	if err := m.Store.Save(*u); err != nil {
		return err
	}
	watchdog, err := startWatchdog(m.Guard(*u), m.Store.path(u.NIC, logSuffix))
	if err != nil {
		if was == "" {
			return errors.Join(err, m.Store.Remove(u.NIC))
		}
		u.State = was
		return errors.Join(err, m.Store.Save(*u))
	}
	m.watchdog = watchdog
	return nil
}

// unguard ends the watchdog.
func (m *Mover) unguard() {
	m.watchdog.end()
	m.watchdog = nil
}

// back restores the NIC's configuration from the undo file, removes the bridge, and then removes the file. If Open
// vSwitch fails, it still configures the kernel, so that the host is reachable through the NIC; the file stays.
func (m *Mover) back(ctx context.Context, u Undo) error {
	m.ovsStuck = false
	err := m.converge(ctx, func() ([]nicmove.Step, error) {
		have, err := m.readKernel(u.NIC, u.Bridge)
		if err != nil {
			return nil, err
		}
		if !have.NIC.Exists() {
			return nil, fmt.Errorf("interface %s does not exist any more", u.NIC)
		}
		err = m.readOVS(ctx, &have, u.NIC, u.Bridge)
		steps := nicmove.Back(u.saved(m.Now()), have)
		if err != nil && len(steps) > 0 {
			m.say("%s: Open vSwitch does not answer: only the kernel is configured", u.NIC)
			err = nil
		}
		return steps, err
	}, true)
	if err == nil {
		err = m.awaitGone(ctx, u.Bridge)
	}
	if err != nil {
		return fmt.Errorf("restoring the configuration of %s: %w", u.NIC, errors.Join(err, m.takeDown(ctx, u.Bridge)))
	}
	return m.Store.Remove(u.NIC)
}

// takeDown sets an interface down that Open vSwitch should have removed, so that its routes do not compete with the
// NIC's.
func (m *Mover) takeDown(ctx context.Context, bridge string) error {
	d, err := m.Kernel.NIC(bridge)
	if err != nil || !d.Link.Up {
		return err
	}
	down := d.Link
	down.Up = false
	return m.apply(ctx, nicmove.Step{Have: d.Link, Want: down})
}

// awaitGone waits until the kernel has no interface of this name: it vanishes a moment after the bridge's row. If
// ovs-vswitchd was killed and left the interface behind, awaitGone removes it.
func (m *Mover) awaitGone(ctx context.Context, link string) error {
	limit := settleTimeout
	if m.ovsStuck {
		limit = 0
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		all, err := m.Kernel.LinkNames()
		if err != nil || !all[link] {
			return err
		}
		select {
		case <-waiting.Done():
			if removed, err := m.Kernel.RemoveTap(link); removed || err != nil {
				return err
			}
			return fmt.Errorf("interface %s still exists, but Open vSwitch has no such bridge: is ovs-vswitchd running?", link)
		case <-time.After(settlePause):
		}
	}
}
