package ovspod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Switch is ovs-vswitchd.
type Switch struct {
	Layout
	Datapath string // config.DatapathSystem or DatapathNetdev
	Tunnel   Tunnel
	Log      *slog.Logger
}

// flowsTimeout is how long ovn-controller has to give the flows again that were not saved. It waits for some of that
// time itself (ovn-ofctrl-wait-before-clear). tunnelPeriod is how often the tunnels' NIC is looked at.
const (
	flowsTimeout = 15 * time.Second
	tunnelPeriod = 10 * time.Second
)

// Run runs ovs-vswitchd until ctx ends, and starts it again when it dies. It returns an error if it dies at once.
func (s Switch) Run(ctx context.Context) error {
	if s.switchAnswers(ctx) {
		return ErrHostRuns
	}
	if err := s.loadModule(ctx); err != nil {
		return err
	}
	for told := false; !s.databaseAnswers(); told = true {
		if !told {
			s.Log.Info("waiting for the database", "socket", s.socket())
		}
		if err := pause(ctx, lookAgain); err != nil {
			return nil //nolint:nilerr // it was told to end
		}
	}
	return keepRunning(ctx, s.Log, "ovs-vswitchd", s.once)
}

// once runs ovs-vswitchd until it or ctx ends.
func (s Switch) once(ctx context.Context) error {
	found, err := s.prepare(ctx)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.daemon(running, "ovs-vswitchd", "unix:"+s.socket()) }()
	attended, leave := context.WithCancel(ctx)
	defer leave()
	left := make(chan error, 1)
	go func() { left <- s.attend(attended, found) }()
	select {
	case err = <-ended:
		leave()
		return errors.Join(err, <-left)
	case err = <-left:
	}
	if ctx.Err() == nil {
		stop()
		return errors.Join(err, <-ended)
	}
	if err := (Flows{s.Layout}).Save(running); err != nil {
		s.Log.Warn("saving the flows failed: the next ovs-vswitchd waits for ovn-controller's", "error", err)
	}
	stop()
	return <-ended
}

// found is what a new ovs-vswitchd finds in the database.
type found struct {
	bridges []string
	config  int // the number that it has to acknowledge
}

// prepare writes what ovs-vswitchd must find in the database.
func (s Switch) prepare(ctx context.Context) (f found, err error) {
	version, err := s.tool(ctx, "ovs-vswitchd", "--version")
	if err != nil {
		return f, err
	}
	version, _, _ = strings.Cut(version, "\n")
	row := []string{"init", "--", "set", "Open_vSwitch", ".", "ovs-version=" + version[strings.LastIndex(version, " ")+1:],
		fmt.Sprintf("external_ids:rundir=%q", s.Sockets)}
	interfaces, err := s.vsctl(ctx, "--bare", "--columns=name", "list", "Interface")
	if err != nil {
		return f, err
	}
	if err := s.Tunnel.refuse(ctx, s.Datapath, strings.Fields(interfaces)); err != nil {
		return f, err
	}
	if a, ok := s.Tunnel.address(); ok {
		row = append(row, fmt.Sprintf("external_ids:%s=%q", names.OVSEncapIP, a))
	}
	out, err := s.vsctl(ctx, "list-br")
	if err != nil {
		return f, err
	}
	f.bridges = strings.Fields(out)
	if len(f.bridges) > 0 {
		row = append(row, "other_config:flow-restore-wait=true")
	}
	if _, err := s.vsctl(ctx, row...); err != nil {
		return f, err
	}
	former, err := s.vsctl(ctx, "get", "Open_vSwitch", ".", "next_cfg")
	if err != nil {
		return f, err
	}
	if _, err := fmt.Sscan(former, &f.config); err != nil {
		return f, fmt.Errorf("reading next_cfg %q of the Open_vSwitch row: %w", former, err)
	}
	f.config++
	_, err = s.vsctl(ctx, "set", "Open_vSwitch", ".", fmt.Sprintf("next_cfg=%d", f.config))
	return f, err
}

// attend has a new ovs-vswitchd handle packets when it has its flows. Then it keeps the tunnels' NIC in its bridge
// until ctx ends. It returns an error if there is another database, which lacks what prepare writes.
func (s Switch) attend(ctx context.Context, f found) error {
	// While it makes the bridges, ovs-vswitchd closes connections to them.
	_, err := s.tool(ctx, "ovs-vsctl", "--no-wait", "--timeout=25", "--db=unix:"+s.socket(), "wait-until", "Open_vSwitch",
		".", fmt.Sprintf("cur_cfg>=%d", f.config))
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("ovs-vswitchd has not made its bridges in time", "error", err)
	}
	if err := s.refill(ctx, f.bridges); err != nil {
		s.Log.Warn("restoring the flows failed", "error", err)
	}
	for ctx.Err() == nil {
		_, err := s.vsctl(ctx, "remove", "Open_vSwitch", ".", "other_config", "flow-restore-wait")
		if err == nil {
			break
		}
		s.Log.Warn("having ovs-vswitchd handle packets failed", "error", err)
		_ = pause(ctx, time.Second) // the loop looks at ctx
	}
	for first := ""; ctx.Err() == nil; _ = pause(ctx, tunnelPeriod) { // the loop looks at ctx
		row, err := s.vsctl(ctx, "get", "Open_vSwitch", ".", "_uuid")
		if err != nil {
			continue // the database is starting again
		}
		if first != "" && row != first {
			return errors.New("there is another database, which lacks what was in the one before")
		}
		first = row
		if err := s.keepTunnel(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("moving the tunnels' NIC into a bridge failed", "nic", s.Tunnel.Interface, "error", err)
		}
	}
	return nil
}

// keepTunnel has the tunnels' NIC be in its bridge, unless `ovnkube cleanup node` has removed OVN's keys.
func (s Switch) keepTunnel(ctx context.Context) error {
	used, err := s.vsctl(ctx, "--if-exists", "get", "Open_vSwitch", ".", "external_ids:"+names.OVSEncapIP)
	if err != nil || used == "" {
		return err
	}
	return s.Tunnel.keep(ctx, s.Datapath)
}

// refill waits until bridges have flows: those that were saved, or else those that ovn-controller gives br-int.
func (s Switch) refill(ctx context.Context, bridges []string) error {
	f := Flows{s.Layout}
	var failed error
	if f.Saved() {
		failed = f.Restore(ctx)
		if err := f.Forget(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, flowsTimeout)
	defer cancel()
	for _, b := range bridges {
		if b != names.IntegrationBridge {
			continue // its flows follow, or it needs none
		}
		for {
			out, err := s.tool(ctx, "ovs-ofctl", "--timeout=5", "dump-aggregate", b)
			if err == nil && !strings.Contains(out, "flow_count=0") {
				return failed
			}
			if late := pause(ctx, lookAgain); late != nil {
				return errors.Join(failed, fmt.Errorf("waiting for flows in bridge %s: %w", b, late), err)
			}
		}
	}
	return failed
}

// loadModule has the kernel's part of the datapath be there.
func (s Switch) loadModule(ctx context.Context) error {
	module, sign := "openvswitch", "/sys/module/openvswitch"
	instead := "install it, or set node.datapathType=netdev and openvswitch.tunnelInterface in the chart's values"
	if s.Datapath == config.DatapathNetdev {
		module, sign, instead = "tun", "/dev/net/tun", "load it on the machine"
	}
	if exists(sign) {
		return nil
	}
	if _, err := s.tool(ctx, "modprobe", module); err != nil {
		return fmt.Errorf("loading the kernel's module %s: %w: %s", module, err, instead)
	}
	s.Log.Info("loaded the kernel's module", "module", module)
	if _, err := os.Stat(sign); err != nil && s.Datapath == config.DatapathNetdev {
		return fmt.Errorf("looking for the userspace datapath's device: %w: %s", err, instead)
	}
	return nil
}
