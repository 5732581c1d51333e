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

const (
	ioTimeout     = 5 * time.Second  // for a plugin to send its request or to read the answer
	undoTimeout   = 10 * time.Second // for undoing a failed ADD
	delTimeout    = 5 * time.Second  // for Open vSwitch to answer DEL
	settleTimeout = 2 * time.Second  // for a transaction that is on its way when ADD ends
)

// Switch is Open vSwitch. *ovs.DB implements it.
type Switch interface {
	SwitchState
	AddPodPort(ctx context.Context, want hostplan.Port) error
	RemovePodPorts(ctx context.Context, gone func(sandbox string) bool) ([]string, error)
	WaitInstalled(ctx context.Context, name string) (ovs.InterfaceState, error)
}

// SwitchState is the cached state of Open vSwitch, as of the last moment at which Connected was true.
type SwitchState interface {
	Connected() bool
	Interface(name string) (ovs.InterfaceState, bool)
	Sandboxes() []string
	ExternalID(key string) (string, error) // of the Open_vSwitch row
}

// Pods has the node's pods. *local.Watcher implements it.
type Pods interface {
	WaitPod(ctx context.Context, namespace, name string, accept func(p local.Pod, ok bool) bool) error
	LocalPods() []local.Pod
}

// Settings are common to all pods of the node.
type Settings struct {
	MTU         int    // bytes
	Userspace   bool   // br-int's datapath is userspace
	NodeSubnets string // the node's subnets in every network, as its annotation has them
}

// Node is the agent.
type Node interface {
	// Settings returns once pods can be served. If ctx ends first, the error says what is missing.
	Settings(ctx context.Context) (Settings, error)
	// Missing returns why pods cannot be served, or nil if they can. It is a LimitedError if running pods may be
	// without network, too.
	Missing() error
}

// LimitedError says that something is missing that running pods need, too.
type LimitedError struct{ Reason error }

// Error implements error.
func (e *LimitedError) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
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

// Steps of ADD after those of podif, for Server.Reached.
const (
	StepPort      = "port added"
	StepFlows     = "flows installed"
	StepAnnounced = "addresses announced"
	StepAnswered  = "answered"
)

// Steps lists all steps of ADD in their order.
func Steps() []string { return append(podif.Steps(), StepPort, StepFlows, StepAnnounced, StepAnswered) }

// Observer records durations. Its methods are called from many goroutines.
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
	// Binding returns why a logical port is not up, "" if unknown. It is called when ADD has waited in vain.
	Binding func(ctx context.Context, logicalPort string) string
	// MultusFirst, if set, tells whether the runtime calls Multus instead of this plugin. It is asked at each ADD.
	MultusFirst func() bool
	// Timeout limits the time for a request. 0 stands for protocol.ServeTimeout.
	Timeout time.Duration
	// Reached, if set, is called after each of the Steps of an ADD. Tests end the agent or the plugin there.
	Reached func(step string)

	locks locks
	work  sync.WaitGroup

	mu       sync.Mutex
	serveCtx context.Context // of Serve
	pending  map[string]bool // ids of requests whose ports are still to be removed
}

// Serve answers requests until ctx ends. It then waits for the running requests, which are cancelled and undo their
// work.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	defer s.work.Wait()
	s.mu.Lock()
	s.serveCtx = ctx
	s.mu.Unlock()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("accepting CNI requests: %w", err)
			}
			// Such as too many open files: the request waits in the socket meanwhile.
			s.Log.Warn("a CNI request must wait", "error", err, "retry", acceptRetry)
			pause(ctx, acceptRetry)
			continue
		}
		s.work.Go(func() {
			s.serve(ctx, c)
			_ = c.Close() // the answer is sent, or the plugin is gone
		})
	}
}

// acceptRetry is the time until the next attempt to accept a request.
const acceptRetry = time.Second

// pause waits, at most until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
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
			return // another agent or the doctor only checked that an agent is listening
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
		// The plugin sends nothing more, so that the read ends when the plugin goes away.
		if _, err := c.Read(make([]byte, 1)); err != nil {
			gone(errGone)
		}
	}()
	about := requestOf(r)
	response, unlock := s.handleLocked(hungUp, about)
	defer unlock()
	s.record(about, response, time.Since(start))
	delivered := s.answer(c, response)
	if r.Command == protocol.Add && response.Error == nil {
		s.finish(ctx, about.made, delivered)
	}
}

// handleLocked serves a request when no other request for the same container is running. Others wait until unlock.
func (s *Server) handleLocked(ctx context.Context, r *request) (response protocol.Response, unlock func()) {
	if r.Command == protocol.GC || r.Command == protocol.Status {
		return s.handle(ctx, r), func() {} // these concern no container, even if the environment names one
	}
	unlock, err := s.locks.lockAll(ctx, names.HostVeth(r.ContainerID), names.HostVeth(r.id))
	if err != nil {
		err = cniError(protocol.CodeTryAgain, err.Error(), "another request for this container is at work")
		return failure(err), func() {}
	}
	return s.handle(ctx, r), unlock
}

// record logs and counts a request.
func (s *Server) record(r *request, response protocol.Response, took time.Duration) {
	log := s.Log.With("command", r.Command, "sandbox", r.id, "args", r.Args, "took", took)
	var code uint
	if e := response.Error; e != nil {
		code = e.Code
		log.Warn("CNI request failed", "code", code, "error", e)
	} else {
		log.Info("CNI request served")
	}
	s.Observer.Request(r.Command, code, took)
}

// errGone is the cause when a request's context ends because the plugin went away.
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
func (s *Server) handle(ctx context.Context, r *request) protocol.Response {
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
		return failure(cniError(protocol.CodeInvalidEnv, "", "CNI_COMMAND %q is not known", r.Command))
	}
}

func cniError(code uint, details, format string, args ...any) *protocol.Error {
	return &protocol.Error{Code: code, Msg: fmt.Sprintf(format, args...), Details: details}
}

// failure returns the response for err, which may be nil.
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

// removeLater tries to remove the ports that a request with this id is about until it succeeds or the server ends.
func (s *Server) removeLater(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[id] || s.serveCtx == nil {
		return
	}
	if s.pending == nil {
		s.pending = map[string]bool{}
	}
	s.pending[id] = true
	ctx := s.serveCtx
	s.work.Go(func() {
		defer func() { s.mu.Lock(); delete(s.pending, id); s.mu.Unlock() }()
		for ctx.Err() == nil {
			if err := s.removePorts(ctx, id); err == nil {
				s.Log.Info("ports of a deleted container removed", "sandbox", id)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(retryInterval):
			}
		}
	})
}
