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

// How long one step may take, and how often the host is compared anew: the
// kernel makes some things by itself, and not at once.
const (
	stepTimeout   = 10 * time.Second
	maxPasses     = 5
	passPause     = 200 * time.Millisecond
	settlePause   = 10 * time.Millisecond
	settleTimeout = 5 * time.Second
)

// Mover moves NICs of the network namespace that it was made in.
type Mover struct {
	OVS    *ovs.DB
	Kernel *hostnet.Netlink
	Store  Store
	Out    io.Writer             // what is done, one line each
	Step   func(number int)      // called before each step, from 1; nil for nothing
	Guard  func(u Undo) []string // the command line of a watchdog for the undo file
	Now    func() time.Time      // the clock
	steps  int                   // made so far
	deaf   bool                  // ovs-vswitchd has not followed
	dog    *Watchdog             // nil when there is none
}

func (m *Mover) say(format string, args ...any) { fmt.Fprintf(m.Out, format+"\n", args...) }

// read reads what a plan is compared with.
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

// follow carries out what plan answers until that is nothing. With brave a step
// that does not work does not keep the others from being made.
func (m *Mover) follow(ctx context.Context, plan func() ([]nicmove.Step, error), brave bool) error {
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
			if err := m.make(ctx, s); err != nil {
				err = fmt.Errorf("applying %q: %w", s, err)
				if !brave {
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
	return errors.Join(append(failed, fmt.Errorf("after %d attempts this is still to be done: %s", maxPasses, strings.Join(lines, "; ")))...)
}

// make makes one step.
func (m *Mover) make(ctx context.Context, s nicmove.Step) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	m.dog.beat()
	m.steps++
	if m.Step != nil {
		m.Step(m.steps)
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	var err error
	if ofOVS(s) {
		err = m.makeOVS(ctx, s)
	} else {
		err = m.Kernel.Carry(s)
	}
	if err == nil {
		m.say("%s", s)
	}
	return err
}

// makeOVS makes a step of Open vSwitch. It waits for ovs-vswitchd to follow, but
// not again for one that has not.
func (m *Mover) makeOVS(ctx context.Context, s nicmove.Step) error {
	if err := m.OVS.Carry(ctx, s); err != nil || m.deaf {
		return err
	}
	settling, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := m.OVS.Settle(settling); err != nil {
		m.deaf = true
		return err
	}
	if p, ok := s.Want.(nicmove.Port); ok {
		return m.OVS.Opened(ctx, p)
	}
	return nil
}

func ofOVS(s nicmove.Step) bool {
	thing := s.Want
	if thing == nil {
		thing = s.Have
	}
	switch thing.(type) {
	case nicmove.Bridge, nicmove.Port:
		return true
	}
	return false
}

// running makes sure, before anything is changed, that ovs-vswitchd runs.
func (m *Mover) running(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return m.OVS.Settle(ctx)
}

// guard writes the undo file and starts the watchdog, before the first change.
// Without a watchdog the file is as before: was is its state then, "" for none.
func (m *Mover) guard(was State, u *Undo, state State) error {
	u.State, u.Session = state, fmt.Sprint(m.Now().UnixNano())
	if err := m.Store.Save(*u); err != nil {
		return err
	}
	dog, err := startWatchdog(m.Guard(*u), m.Store.path(u.NIC, logSuffix))
	if err != nil {
		if was == "" {
			return errors.Join(err, m.Store.Remove(u.NIC))
		}
		u.State = was
		return errors.Join(err, m.Store.Save(*u))
	}
	m.dog = dog
	return nil
}

// unguard ends the watchdog, which has had nothing to tell.
func (m *Mover) unguard() {
	m.dog.end()
	m.dog = nil
}

// back gives the NIC what the undo file says and removes the bridge and then
// the file. When Open vSwitch fails, the kernel's part is done nevertheless, so
// that the host is reachable through the NIC; the file stays.
func (m *Mover) back(ctx context.Context, u Undo) error {
	m.deaf = false
	err := m.follow(ctx, func() ([]nicmove.Step, error) {
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
			m.say("%s: without Open vSwitch, which does not answer", u.NIC)
			err = nil
		}
		return steps, err
	}, true)
	if err == nil {
		err = m.awaitGone(ctx, u.Bridge)
	}
	if err != nil {
		return fmt.Errorf("giving %s back what it had: %w", u.NIC, errors.Join(err, m.silence(ctx, u.Bridge)))
	}
	return m.Store.Remove(u.NIC)
}

// silence takes an interface that Open vSwitch should have removed down, so that
// its routes don't compete with the NIC's.
func (m *Mover) silence(ctx context.Context, bridge string) error {
	d, err := m.Kernel.NIC(bridge)
	if err != nil || !d.Link.Up {
		return err
	}
	down := d.Link
	down.Up = false
	return m.make(ctx, nicmove.Step{Have: d.Link, Want: down})
}

// awaitGone waits until the kernel has no interface of this name any more: it
// goes a moment after the bridge's row. One that an ovs-vswitchd that was killed
// has left is removed here.
func (m *Mover) awaitGone(ctx context.Context, link string) error {
	limit := settleTimeout
	if m.deaf {
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
			return fmt.Errorf("interface %s is still there although Open vSwitch has no such bridge any more: does ovs-vswitchd run?", link)
		case <-time.After(settlePause):
		}
	}
}
