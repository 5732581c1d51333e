package nicmove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Options says how NICs are moved.
type Options struct {
	Datapath    string        // datapath_type of the bridges; "": as it is, or system
	Target      *Target       // must answer for a move to stand; nil: the NIC's default router, if it answers before
	Timeout     time.Duration // how long Target may take
	Unconfirmed bool          // let a move stand without asking
	DryRun      bool          // only print the steps
	Boot        bool          // put back into effect what was moved before a reboot
}

// ErrNoTarget says that nobody is known who could confirm a move.
var ErrNoTarget = errors.New("nobody is known who could confirm that the node is reachable after the move, and no default router behind the NIC answers a ping: give --confirm-target HOST:PORT or IP, or the API server (--k8s-apiserver, --kubeconfig, or external_ids:k8s-api-server in Open vSwitch), or --no-confirm")

// Move moves NICs into their bridges, one after the other. The first that does
// not work ends it, with that NIC as it was before.
func (m *Mover) Move(ctx context.Context, nics []string, o Options) error {
	if err := collisions(nics); err != nil {
		return err
	}
	for _, nic := range nics {
		if err := m.moveOne(ctx, nic, o); err != nil {
			return fmt.Errorf("%s: %w", nic, err)
		}
	}
	return nil
}

func (m *Mover) moveOne(ctx context.Context, nic string, o Options) error {
	unlock, err := m.Store.Lock(nic, false)
	if err != nil {
		return err
	}
	defer unlock()
	u, known, err := m.Store.Load(nic)
	if err != nil {
		return err
	}
	if known && !o.DryRun {
		if done, err := m.unfinished(ctx, u, o.Boot); done || err != nil {
			return err
		}
	}
	bridge := names.UplinkBridge(nic)
	have, err := m.read(ctx, nic, bridge)
	if err != nil {
		return err
	}
	datapath := cmp.Or(o.Datapath, have.Row.Datapath, u.Datapath, config.DatapathSystem)
	if o.Boot { // what has been confirmed counts
		datapath = cmp.Or(have.Row.Datapath, u.Datapath, datapath)
	}
	if err := m.refuse(nic, bridge, datapath, have); err != nil {
		return err
	}
	if o.Boot && !known && have.PortOn == "" {
		return errors.New("it has not been moved to a bridge yet, so there is nothing to do at boot: run nics-to-bridge without --boot first")
	}
	device, fresh := m.moving(u, known, have)
	if fresh {
		u = Undo{NIC: nic, Bridge: bridge, Saved: m.Now(), Device: have.Before()}
	}
	u.Datapath = datapath
	plan := func() ([]nicmove.Step, error) {
		have, err := m.read(ctx, nic, bridge)
		if err != nil {
			return nil, err
		}
		all := device.Merged(have.NIC)
		return nicmove.Forward(all, nicmove.BridgeFor(all.Link, bridge, datapath), have), nil
	}
	steps, err := plan()
	switch {
	case err != nil:
		return err
	case o.DryRun:
		m.preview(nic, steps)
		return nil
	case len(steps) == 0 && u.State != Moving:
		m.say("%s: nothing to do: bridge %s has all that it needs", nic, bridge)
		return nil
	case o.Boot:
		return m.boot(ctx, u, plan)
	}
	return m.confirmed(ctx, u, plan, o)
}

// unfinished deals with what an earlier run has left unfinished, where that is
// not to move on. done tells that no more is to be done.
func (m *Mover) unfinished(ctx context.Context, u Undo, boot bool) (done bool, err error) {
	switch {
	case boot && u.State == Moving:
		m.say("%s: the move to %s had not been confirmed when this host stopped: taking it back", u.NIC, u.Bridge)
		if err := m.back(ctx, u); err != nil {
			return true, err
		}
		return true, fmt.Errorf("rolled back: the move to %s had not been confirmed when this host stopped", u.Bridge)
	case boot && u.State == Returning:
		m.say("%s: finishing the way back from %s", u.NIC, u.Bridge)
		return true, m.back(ctx, u)
	case u.State == Returning:
		return true, fmt.Errorf("its way back was interrupted: run bridges-to-nic %s to finish it", u.Bridge)
	case u.State == Moving:
		m.say("%s: an earlier move was interrupted: going on with it", u.NIC)
	}
	return false, nil
}

// moving is what has to be on the bridge. fresh tells that an undo file has to
// be begun.
func (m *Mover) moving(u Undo, known bool, have nicmove.Host) (device nicmove.Device, fresh bool) {
	inside := have.PortOn == have.Row.Name && have.PortOn != ""
	switch {
	case known && u.State == Moving, known && !have.NIC.Carries() && !have.Bridge.Carries():
		return u.saved(m.Now()), false // what is there is at most half of it
	case inside: // after a reboot, the distribution has given the NIC what it had; or all is as it should be
		device = have.NIC
		device.Sysctls = nil
		if known && have.NIC.Carries() {
			device.Sysctls = u.Device.Sysctls
		}
		device.Link.Up = device.Link.Up || u.Device.Link.Up
		return device, !known
	}
	return have.NIC, true
}

// boot moves without asking anybody: the move was confirmed before the reboot,
// and whom to ask may not be up yet.
func (m *Mover) boot(ctx context.Context, u Undo, plan func() ([]nicmove.Step, error)) error {
	u.State = Moved
	if err := m.Store.Save(u); err != nil {
		return err
	}
	if err := m.follow(ctx, plan, true); err != nil {
		return err
	}
	m.say("%s: moved to bridge %s again", u.NIC, u.Bridge)
	return nil
}

// confirmed moves, and takes the move back unless the target answers.
func (m *Mover) confirmed(ctx context.Context, u Undo, plan func() ([]nicmove.Step, error), o Options) error {
	if o.Target == nil && !o.Unconfirmed {
		if o.Target = router(ctx, u.Device); o.Target == nil {
			return ErrNoTarget
		}
	}
	if err := m.running(ctx); err != nil {
		return err
	}
	if err := m.guard(u.State, &u, Moving); err != nil {
		return err
	}
	defer m.unguard()
	err := m.follow(ctx, plan, false)
	if err == nil && !o.Unconfirmed {
		m.say("%s: asking %s for up to %s", u.NIC, o.Target, o.Timeout)
		err = o.Target.await(ctx, o.Timeout, m.dog.beat)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	if err == nil {
		u.State = Moved
		err = m.Store.Save(u)
	}
	if err != nil {
		return m.rollBack(ctx, u, err)
	}
	if o.Unconfirmed {
		m.say("%s: moved to bridge %s, unconfirmed", u.NIC, u.Bridge)
	} else {
		m.say("%s: moved to bridge %s: %s has answered", u.NIC, u.Bridge, o.Target)
	}
	m.adviseDHCP(u)
	return nil
}

// rollBack gives the NIC back what it had, also when ctx has ended.
func (m *Mover) rollBack(ctx context.Context, u Undo, cause error) error {
	m.say("%s: rolling back: %v", u.NIC, cause)
	if err := m.back(context.WithoutCancel(ctx), u); err != nil {
		m.dog.leave()
		m.dog = nil
		return fmt.Errorf("%w; rolling back has not worked: %w; the watchdog goes on trying (%s), and bridges-to-nic %s would", cause, err, m.Store.path(u.NIC, logSuffix), u.Bridge)
	}
	return fmt.Errorf("rolled back, it has again what it had: %w", cause)
}

// adviseDHCP tells of leases: the client that holds one knows only the NIC.
func (m *Mover) adviseDHCP(u Undo) {
	for _, a := range u.Device.Addrs {
		if a.Prefix.Addr().Is4() && a.Valid != nicmove.Forever {
			m.say("%s: %s is a lease that ends %d s after it was last renewed: have the DHCP client run on %s from now on", u.NIC, a.Prefix, a.Valid, u.Bridge)
		}
	}
}

func (m *Mover) preview(nic string, steps []nicmove.Step) {
	if len(steps) == 0 {
		m.say("%s: nothing to do", nic)
	}
	for _, s := range steps {
		m.say("%s", s)
	}
}

// Return gives NICs back what their bridges have, and removes the bridges.
func (m *Mover) Return(ctx context.Context, bridges []string, dryRun bool) error {
	for _, bridge := range bridges {
		if err := m.returnOne(ctx, bridge, dryRun); err != nil {
			return fmt.Errorf("%s: %w", bridge, err)
		}
	}
	return nil
}

func (m *Mover) returnOne(ctx context.Context, bridge string, dryRun bool) error {
	nic, err := m.nicOf(ctx, bridge)
	if err != nil {
		return err
	}
	if nic == "" {
		m.say("%s: nothing to do: there is no such bridge, and no undo file names it", bridge)
		return nil
	}
	unlock, err := m.Store.Lock(nic, false)
	if err != nil {
		return err
	}
	defer unlock()
	u, known, err := m.Store.Load(nic)
	if err != nil {
		return err
	}
	have, err := m.read(ctx, nic, bridge)
	if err != nil {
		return err
	}
	if !known {
		m.say("%s: there is no undo file: %s gets what is on the bridge", bridge, nic)
		u = Undo{NIC: nic, Bridge: bridge, Datapath: have.Row.Datapath, Saved: m.Now(), Device: have.Before()}
	}
	if dryRun {
		m.preview(nic, nicmove.Back(u.saved(m.Now()), have))
		return nil
	}
	if _, others, err := m.OVS.UplinkOf(ctx, nic); err == nil && len(others) > 0 {
		m.say("%s: removing it with its other ports %v", bridge, others)
	}
	if err := m.running(ctx); err != nil {
		return err
	}
	if err := m.guard(u.State, &u, Returning); err != nil {
		return err
	}
	defer m.unguard()
	if err := m.back(context.WithoutCancel(ctx), u); err != nil {
		return err
	}
	m.say("%s: %s has again what it had", bridge, nic)
	return nil
}
