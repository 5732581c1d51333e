package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cni/podif"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// How long a plugin may take to send its request and to read the answer, how
// long undoing a failed ADD may take, how long DEL waits for Open vSwitch, and
// how long a change that is under way there is waited for when ADD has ended.
const (
	ioTimeout     = 5 * time.Second
	undoTimeout   = 10 * time.Second
	delTimeout    = 5 * time.Second
	settleTimeout = 2 * time.Second
)

// Switch is Open vSwitch; *ovs.DB is one.
type Switch interface {
	SwitchState
	AddPodPort(ctx context.Context, want hostplan.Port) error
	RemovePodPorts(ctx context.Context, gone func(sandbox string) bool) ([]string, error)
	WaitInstalled(ctx context.Context, name string) (ovs.InterfaceState, error)
}

// SwitchState is what is known of Open vSwitch without asking it; it is as of
// the last moment when Connected was true.
type SwitchState interface {
	Connected() bool
	Interface(name string) (ovs.InterfaceState, bool)
	Sandboxes() []string
}

// Pods is the node's pods; *local.Watcher is one.
type Pods interface {
	WaitPod(ctx context.Context, namespace, name string, accept func(p local.Pod, ok bool) bool) error
}

// Settings is what holds for all pods of the node.
type Settings struct {
	MTU       int  // bytes
	Userspace bool // br-int's datapath is userspace
}

// Node is the agent.
type Node interface {
	// Settings returns once pods can be served. When ctx ends first, the error
	// says what is missing.
	Settings(ctx context.Context) (Settings, error)
	// Missing says what keeps pods from being served, nil for nothing; a
	// LimitedError when pods that are there may be without their network too.
	Missing() error
}

// LimitedError is something missing that running pods need too.
type LimitedError struct{ Reason error }

// Error implements error.
func (e *LimitedError) Error() string { return e.Reason.Error() }

// Unwrap is the reason.
func (e *LimitedError) Unwrap() error { return e.Reason }

// Phase is a step of ADD.
type Phase string

// The phases of ADD, in their order.
const (
	PhaseAgent      Phase = "agent"      // waiting until the agent can serve pods
	PhaseAnnotation Phase = "annotation" // waiting for the pod and its annotation
	PhaseInterface  Phase = "interface"  // making the veth pair
	PhasePort       Phase = "port"       // adding the port to br-int
	PhaseFlows      Phase = "flows"      // waiting for ovn-installed
)

// Steps of ADD after podif's, as Server.Reached is told of them.
const (
	StepPort      = "port added"
	StepFlows     = "flows installed"
	StepAnnounced = "addresses announced"
	StepAnswered  = "answered"
)

// Steps lists all steps of ADD in their order.
func Steps() []string { return append(podif.Steps(), StepPort, StepFlows, StepAnnounced, StepAnswered) }

// Observer is told how long things took; the methods are called from many
// goroutines.
type Observer interface {
	Phase(p Phase, took time.Duration)
	Request(command string, code uint, took time.Duration) // code 0 is success
}

// Server serves CNI requests.
type Server struct {
	Switch   Switch
	Pods     Pods
	Node     Node
	Observer Observer
	Log      *slog.Logger
	// Binding says why a logical port is not up yet, "" when that is not
	// known; it is asked when ADD has waited in vain.
	Binding func(ctx context.Context, logicalPort string) string
	// Timeout bounds one request; 0 is protocol.ServeTimeout.
	Timeout time.Duration
	// Reached, if set, is called after each of the Steps of an ADD: tests end
	// the agent or the plugin there.
	Reached func(step string)

	locks locks
	work  sync.WaitGroup

	mu      sync.Mutex
	life    context.Context // of Serve
	pending map[string]bool // containers whose port is still to be removed
}

// Serve answers requests until ctx ends, then waits for those at work; they
// are cut short and undo what they did.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	defer s.work.Wait()
	s.mu.Lock()
	s.life = ctx
	s.mu.Unlock()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accepting CNI requests: %w", err)
		}
		s.work.Go(func() {
			s.serve(ctx, c)
			_ = c.Close() // the answer is out, or nobody waits for it
		})
	}
}

func (s *Server) serve(ctx context.Context, c *net.UnixConn) {
	start := time.Now()
	if uid, err := peer(c); err != nil || uid != 0 {
		s.Log.Warn("CNI request refused: not from root", "uid", uid, "error", err)
		return
	}
	var r protocol.Request
	_ = c.SetReadDeadline(start.Add(ioTimeout))
	if err := protocol.Read(c, &r); err != nil {
		if errors.Is(err, io.EOF) {
			return // somebody only looked whether there is an agent: another agent, or the doctor
		}
		s.answer(c, protocol.Response{Error: &protocol.Error{Code: protocol.CodeDecoding, Msg: err.Error()}})
		s.Log.Warn("CNI request not understood", "error", err)
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	timeout := cmp.Or(s.Timeout, protocol.ServeTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("gave up after %s", timeout))
	defer cancel()
	hungUp, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	go func() {
		// The plugin sends nothing more: what ends the read is its end.
		if _, err := c.Read(make([]byte, 1)); err != nil {
			gone(errGone)
		}
	}()
	response, unlock := s.alone(hungUp, r)
	defer unlock()
	s.tell(r, response, time.Since(start))
	delivered := s.answer(c, response)
	if r.Command == protocol.Add && response.Error == nil {
		s.settle(ctx, r.ContainerID, delivered)
	}
}

// alone serves a request while no other one for the same container is at work,
// and keeps others waiting until unlock.
func (s *Server) alone(ctx context.Context, r protocol.Request) (response protocol.Response, unlock func()) {
	if r.Command == protocol.GC || r.Command == protocol.Status {
		return s.handle(ctx, r), func() {} // of no container, whatever the environment says
	}
	unlock, err := s.locks.lock(ctx, names.HostVeth(r.ContainerID))
	if err != nil {
		return failure(&protocol.Error{Code: protocol.CodeTryAgain, Msg: "another request for this container is at work", Details: err.Error()}), func() {}
	}
	return s.handle(ctx, r), unlock
}

// tell logs and counts how a request ended.
func (s *Server) tell(r protocol.Request, response protocol.Response, took time.Duration) {
	var code uint
	if e := response.Error; e != nil {
		code = e.Code
		s.Log.Warn("CNI request failed", "command", r.Command, "sandbox", r.ContainerID, "args", r.Args, "took", took, "code", code, "error", e)
	} else {
		s.Log.Info("CNI request served", "command", r.Command, "sandbox", r.ContainerID, "args", r.Args, "took", took)
	}
	s.Observer.Request(r.Command, code, took)
}

// errGone is why a request's context ended when nobody waits for its answer.
var errGone = errors.New("the container runtime gave up waiting")

func (s *Server) answer(c *net.UnixConn, r protocol.Response) (delivered bool) {
	_ = c.SetWriteDeadline(time.Now().Add(ioTimeout))
	if err := protocol.Write(c, r); err != nil {
		s.Log.Warn("CNI answer not delivered", "error", err)
		return false
	}
	return true
}

// handle serves one request.
func (s *Server) handle(ctx context.Context, r protocol.Request) protocol.Response {
	switch r.Command {
	case protocol.Add:
		result, err := s.add(ctx, r)
		if err != nil {
			return failure(err)
		}
		return protocol.Response{Result: result}
	case protocol.Del:
		return failure(s.del(ctx, r))
	case protocol.Check:
		return failure(s.check(ctx, r))
	case protocol.GC:
		return failure(s.gc(ctx, r))
	case protocol.Status:
		return failure(s.status())
	default:
		return failure(&protocol.Error{Code: protocol.CodeInvalidEnv, Msg: fmt.Sprintf("CNI_COMMAND %q is not known", r.Command)})
	}
}

// failure is the answer to a request that ended with err, which may be nil.
func failure(err error) protocol.Response {
	if err == nil {
		return protocol.Response{}
	}
	var e *protocol.Error
	if !errors.As(err, &e) {
		e = &protocol.Error{Code: protocol.CodeInternal, Msg: err.Error()}
	}
	return protocol.Response{Error: e}
}

// removeLater keeps trying to remove a container's port until it works or the
// server ends.
func (s *Server) removeLater(containerID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[containerID] || s.life == nil {
		return
	}
	if s.pending == nil {
		s.pending = map[string]bool{}
	}
	s.pending[containerID] = true
	life := s.life
	s.work.Go(func() {
		defer func() { s.mu.Lock(); delete(s.pending, containerID); s.mu.Unlock() }()
		for life.Err() == nil {
			if err := s.removePort(life, containerID); err == nil {
				s.Log.Info("port of a deleted container removed", "sandbox", containerID)
				return
			}
			select {
			case <-life.Done():
			case <-time.After(retryInterval):
			}
		}
	})
}
