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

// Options say how to move NICs.
type Options struct {
	Datapath    string        // datapath_type of the bridges; "": that of an existing bridge, else system
	Target      *Target       // must answer for a move to stand; nil: a default router that answers before the move
	Timeout     time.Duration // how long Target has to answer
	Unconfirmed bool          // let a move stand without asking Target
	DryRun      bool          // only print the steps
	Boot        bool          // restore a move after a reboot
}

// ErrNoTarget says that no target for confirming a move is known.
var ErrNoTarget = errors.New("no target can confirm that the node is reachable after the move, since no default " +
	"router behind the NIC answers a ping: give --confirm-target HOST:PORT or IP, or the API server (--k8s-apiserver, " +
	"--kubeconfig, or external_ids:k8s-api-server in Open vSwitch), or --no-confirm")

// Move moves NICs into their bridges, one after the other. If one fails, it stops and leaves that NIC as it was before.
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
		if done, err := m.finishEarlier(ctx, u, o.Boot); done || err != nil {
			return err
		}
	}
	bridge := names.UplinkBridge(nic)
	have, err := m.read(ctx, nic, bridge)
	if err != nil {
		return err
	}
	datapath := cmp.Or(o.Datapath, have.Row.Datapath, u.Datapath, config.DatapathSystem)
	if o.Boot { // keep the datapath that was confirmed
		datapath = cmp.Or(have.Row.Datapath, u.Datapath, datapath)
	}
	if err := m.refuse(nic, bridge, datapath, have); err != nil {
		return err
	}
	if o.Boot && !known && have.PortOn == "" {
		return errors.New("it has not been moved to a bridge yet, so there is nothing to do at boot: " +
			"run nics-to-bridge without --boot first")
	}
	device, newUndo := m.deviceToMove(u, known, have)
	if newUndo {
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
		m.say("%s: nothing to do: bridge %s is set up already", nic, bridge)
		return nil
	case o.Boot:
		return m.boot(ctx, u, plan)
	}
	return m.moveAndConfirm(ctx, u, plan, o)
}

// finishEarlier deals with an unfinished earlier run, unless this run continues it. done means that nothing is left to
// do.
func (m *Mover) finishEarlier(ctx context.Context, u Undo, boot bool) (done bool, err error) {
	switch {
	case boot && u.State == Moving:
		m.say("%s: the move to %s had not been confirmed when this host stopped: rolling back", u.NIC, u.Bridge)
		if err := m.back(ctx, u); err != nil {
			return true, err
		}
		return true, fmt.Errorf("rolled back: the move to %s had not been confirmed when this host stopped", u.Bridge)
	case boot && u.State == Returning:
		m.say("%s: finishing the return from %s", u.NIC, u.Bridge)
		return true, m.back(ctx, u)
	case u.State == Returning:
		return true, fmt.Errorf("its return was interrupted: run bridges-to-nic %s to finish it", u.Bridge)
	case u.State == Moving:
		m.say("%s: continuing an interrupted move", u.NIC)
	}
	return false, nil
}

// deviceToMove returns the configuration that the bridge must get. newUndo means that the undo file has to be written
// anew.
func (m *Mover) deviceToMove(u Undo, known bool, have nicmove.Host) (device nicmove.Device, newUndo bool) {
	isPort := have.PortOn == have.Row.Name && have.PortOn != ""
	switch {
	case known && u.State == Moving, known && !have.NIC.Carries() && !have.Bridge.Carries():
		return u.saved(m.Now()), false // the interfaces have only part of it
	case isPort: // the move is complete, or after a reboot the distribution has configured the NIC again
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

// boot moves without asking a target: the move was confirmed before the reboot, and the target may not be up yet.
func (m *Mover) boot(ctx context.Context, u Undo, plan func() ([]nicmove.Step, error)) error {
	u.State = Moved
	if err := m.Store.Save(u); err != nil {
		return err
	}
	if err := m.converge(ctx, plan, true); err != nil {
		return err
	}
	m.say("%s: moved to bridge %s again", u.NIC, u.Bridge)
	return nil
}

// moveAndConfirm moves the NIC, and undoes the move unless the target answers.
func (m *Mover) moveAndConfirm(
	ctx context.Context, u Undo, plan func() ([]nicmove.Step, error), o Options,
) error {
	if o.Target == nil && !o.Unconfirmed {
		if o.Target = defaultRouter(ctx, u.Device); o.Target == nil {
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
	err := m.converge(ctx, plan, false)
	if err == nil && !o.Unconfirmed {
		m.say("%s: asking %s for up to %s", u.NIC, o.Target, o.Timeout)
		err = o.Target.await(ctx, o.Timeout, m.watchdog.beat)
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

// rollBack restores the NIC's configuration, even if ctx has ended.
func (m *Mover) rollBack(ctx context.Context, u Undo, cause error) error {
	m.say("%s: rolling back: %v", u.NIC, cause)
	if err := m.back(context.WithoutCancel(ctx), u); err != nil {
		m.watchdog.leave()
		m.watchdog = nil
		return fmt.Errorf("%w; rolling back failed: %w; the watchdog keeps trying (see %s); you can also run "+
			"bridges-to-nic %s",
			cause, err, m.Store.path(u.NIC, logSuffix), u.Bridge)
	}
	return fmt.Errorf("rolled back, it has its configuration again: %w", cause)
}

// adviseDHCP advises on addresses that are leases: the DHCP client that renews them runs on the NIC.
func (m *Mover) adviseDHCP(u Undo) {
	for _, a := range u.Device.Addrs {
		if a.Prefix.Addr().Is4() && a.Valid != nicmove.Forever {
			m.say("%s: %s is a DHCP lease that ends %d s after its last renewal: run the DHCP client on %s from now on",
				u.NIC, a.Prefix, a.Valid, u.Bridge)
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

// Return moves the configuration of bridges back to their NICs, and removes the bridges.
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
		m.say("%s: there is no undo file: %s gets the bridge's configuration", bridge, nic)
		u = Undo{NIC: nic, Bridge: bridge, Datapath: have.Row.Datapath, Saved: m.Now(), Device: have.Before()}
	}
	if dryRun {
		m.preview(nic, nicmove.Back(u.saved(m.Now()), have))
		return nil
	}
	if _, others, err := m.OVS.UplinkOf(ctx, nic); err == nil && len(others) > 0 {
		m.say("%s: removing the bridge with its other ports %v", bridge, others)
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
	m.say("%s: %s has its configuration again", bridge, nic)
	return nil
}
