package attach

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/process"
)

// NBSocket is the socket of the cluster's Northbound database.
func (b *Bed) NBSocket() string { return b.cluster.Control.Host(control.NBSocket) }

// CreateServices makes the first n services of a namespace and returns their cluster IPs.
func (b *Bed) CreateServices(ctx context.Context, namespace string, n int) ([]string, error) {
	if err := load.Namespace(ctx, b.kube, namespace); err != nil {
		return nil, err
	}
	out := make([]string, n)
	err := load.Parallel(ctx, n, func(ctx context.Context, i int) (err error) {
		out[i], err = load.CreateService(ctx, b.kube, namespace, i)
		return err
	})
	return out, err
}

// SetBackends is load.SetBackends in the cluster.
func (b *Bed) SetBackends(ctx context.Context, namespace string, i, n int) (sent, answered time.Time, err error) {
	return load.SetBackends(ctx, b.kube, namespace, i, n)
}

// FlowsInSync waits until the node's flows are those of the Northbound database.
func (b *Bed) FlowsInSync(ctx context.Context) error {
	if _, err := b.cluster.NBCtl(ctx, "--wait=hv", "sync"); err != nil {
		return fmt.Errorf("waiting for the node's flows: %w", err)
	}
	return nil
}

// FlowWatch follows flows of br-int: those that load-balance packets to virtual addresses, or those of policies.
type FlowWatch struct {
	cmd     *exec.Cmd
	pattern *regexp.Regexp // of the events to follow; its group is the name of what was seen
	tracker atomic.Pointer[load.Tracker]
	started chan error // one value: nil when all existing flows were read, or why that can't be
	done    chan struct{}
	closed  atomic.Bool
}

// existing is the head of the last message about existing flows. Those before it end with "flags=[more]", and those
// about changes have xid 0.
var existing = regexp.MustCompile(`^NXST_FLOW_MONITOR reply \(xid=0x[1-9a-f][0-9a-f]*\):$`)

// WatchFlows starts to watch. t sees existing and new flows, by virtual address. When OVN changes backends, it adds the
// group of new backends first and the flow that uses it last: t sees that flow. The events are lines such as
//
//	event=ADDED table=20 cookie=0x1 priority=120,ct_state=+new+trk,tcp,nw_dst=10.96.0.7,tp_dst=80 actions=...,group:3
//
// It returns when ovs-ofctl has heard of all existing flows: a change that comes before that, ovs-ofctl 3.1 loses.
func (b *Bed) WatchFlows(t *load.Tracker) (*FlowWatch, error) {
	return b.watch(t, regexp.MustCompile(`event=(?:ADDED|MODIFIED) .*nw_dst=([0-9.]+),.*group:`))
}

// WatchPolicyFlows starts to watch. t sees existing and new flows that match a destination port alone, by its number.
func (b *Bed) WatchPolicyFlows(t *load.Tracker) (*FlowWatch, error) {
	return b.watch(t, regexp.MustCompile(`event=(?:ADDED|MODIFIED) .*tp_dst=([0-9]+) `))
}

func (b *Bed) watch(t *load.Tracker, pattern *regexp.Regexp) (*FlowWatch, error) {
	path, err := process.Find("ovs-ofctl", "openvswitch-common")
	if err != nil {
		return nil, err
	}
	w := &FlowWatch{started: make(chan error, 1), done: make(chan struct{}), pattern: pattern}
	w.tracker.Store(t)
	w.cmd = exec.Command(path, "--unixctl=none", "monitor", "unix:"+filepath.Join(b.node.Spec.RunDir(),
		"openvswitch/br-int.mgmt"), "watch:")
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("watching flows: %w", err)
	}
	w.cmd.Stderr = w.cmd.Stdout // unsolicited messages go there
	go w.run(out)
	if err := <-w.started; err != nil {
		<-w.done
		return nil, fmt.Errorf("watching flows: %w", err)
	}
	return w, nil
}

func (w *FlowWatch) run(out io.Reader) {
	// Pdeathsig fires when the thread that forked ends (prctl(2)).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(w.done)
	if err := w.cmd.Start(); err != nil {
		w.tell(err)
		return
	}
	last := w.read(out)
	_ = w.cmd.Wait() // its last line says why it ended
	if !w.closed.Load() {
		err := fmt.Errorf("ovs-ofctl ended: %s", last)
		w.tell(err)
		w.tracker.Load().Fail(fmt.Errorf("watching flows: %w", err))
	}
}

// tell ends the wait for the start. Later calls do nothing.
func (w *FlowWatch) tell(err error) {
	select {
	case w.started <- err:
	default:
	}
}

// To makes another tracker see events from now on.
func (w *FlowWatch) To(t *load.Tracker) { w.tracker.Store(t) }

// Close stops watching.
func (w *FlowWatch) Close() error {
	w.closed.Store(true)
	if err := w.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending ovs-ofctl: %w", err)
	}
	<-w.done
	return nil
}

// read handles the lines of events, and returns the last line of any kind.
func (w *FlowWatch) read(out io.Reader) (last string) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		last = lines.Text()
		if existing.MatchString(last) {
			w.tell(nil)
		}
		if m := w.pattern.FindStringSubmatch(last); m != nil {
			w.tracker.Load().See(load.Name{Name: m[1]})
		}
	}
	return last
}
