package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cni/podif"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// add makes a container's interface, and returns the CNI result as JSON.
func (s *Server) add(ctx context.Context, r request) (result json.RawMessage, err error) {
	conf, prev, err := parseConf(r.Config)
	if err != nil {
		return nil, err
	}
	ref, err := parsePod(r.Args)
	if err != nil {
		return nil, err
	}
	var settings Settings
	err = s.phase(PhaseAgent, func() (err error) { settings, err = s.settings(ctx); return err })
	if err != nil {
		return nil, err
	}
	var pod local.Pod
	var network annotation.PodNetwork
	err = s.phase(PhaseAnnotation, func() (err error) { pod, network, err = s.awaitNetwork(ctx, r.in, ref); return err })
	if err != nil {
		return nil, err
	}
	ctx, release := s.whilePodLives(ctx, r.in, pod, network)
	defer release()
	spec := podif.Spec{
		ID: r.id, Netns: r.Netns, IfName: r.IfName,
		Network: network, MTU: settings.MTU, Userspace: settings.Userspace,
	}
	var veth podif.Veth
	err = s.phase(PhaseInterface, func() (err error) { veth, err = podif.Add(spec, s.reached); return err })
	if err != nil {
		return nil, interfaceError(ref, err)
	}
	if err = s.attach(ctx, ref, r.logicalPort(ref), pod.UID, spec); err == nil {
		err = s.confirm(ctx, r.in, ref, pod, network)
	}
	if err == nil {
		s.announce(spec)
		result, err = marshalResult(conf.CNIVersion, addResult(conf, prev, spec, veth))
	}
	if err != nil {
		s.undo(ctx, r.id)
		return nil, err
	}
	return result, nil
}

// announce announces the pod's addresses to other hosts. A failure is no reason to refuse the pod, since OVN answers
// requests for its MAC.
func (s *Server) announce(spec podif.Spec) {
	if err := podif.Announce(spec); err != nil {
		s.Log.Warn("addresses of a pod not announced", "sandbox", spec.ID, "error", err)
	}
	s.reached(StepAnnounced)
}

// reached tells a test which step ADD has finished.
func (s *Server) reached(step string) {
	if s.Reached != nil {
		s.Reached(step)
	}
}

// finish ends a successful ADD. It undoes the ADD if the runtime did not get the answer.
func (s *Server) finish(ctx context.Context, id string, delivered bool) {
	if !delivered {
		s.undo(ctx, id)
		return
	}
	s.reached(StepAnswered)
	if err := podif.Finish(id); err != nil {
		s.Log.Warn("interface of a container not marked as finished", "sandbox", id, "error", err)
	}
}

// undo removes what an ADD made, even if ctx has ended.
func (s *Server) undo(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := s.remove(ctx, id); err != nil {
		s.Log.Warn("undoing an ADD left something for DEL", "sandbox", id, "error", err)
	}
}

// phase runs a phase of ADD and records how long it took.
func (s *Server) phase(p Phase, step func() error) error {
	start := time.Now()
	err := step()
	s.Observer.Phase(p, time.Since(start))
	return err
}

func (s *Server) settings(ctx context.Context) (Settings, error) {
	settings, err := s.Node.Settings(ctx)
	if err != nil {
		details := fmt.Sprintf("%v (%v); its /readyz says the same", err, context.Cause(ctx))
		return settings, cniError(protocol.CodeTryAgain, details, "the node agent can't serve pods yet")
	}
	return settings, nil
}

// recheck is how often a wait for the annotation looks again: other objects may decide whether it is valid.
const recheck = time.Second

// awaitNetwork waits until the pod that the runtime names has a valid annotation. It waits also while the annotation is
// malformed or refused, since the master rewrites it.
func (s *Server) awaitNetwork(
	ctx context.Context, in cluster.Attachment, ref podRef,
) (local.Pod, annotation.PodNetwork, error) {
	var pod local.Pod
	var network annotation.PodNetwork
	var missing string // what is still missing
	seen, gone := false, false
	look := func(p local.Pod, ok bool) bool {
		pod = p
		var err error
		mine := ok && p.HasUID(ref.uid)
		if gone = !mine && (seen || ref.uid != "" && ref.uid == p.Before); gone {
			missing = errPodGone.Error()
			return true
		}
		seen = mine
		switch {
		case !ok:
			missing = fmt.Sprintf("this node's watch has not seen pod %s; is it there, and on this node?", ref)
		case !mine:
			missing = fmt.Sprintf("pod %s has UID %s, the runtime asks for one with UID %s, which was deleted or "+
				"has not been seen yet", ref, p.UID, ref.uid)
		case p.Network == "":
			missing = fmt.Sprintf("pod %s has no annotation %s yet; `ovnkube master` writes it: look whether it runs, "+
				"and at the pod's events", ref, annotation.PodNetworks)
		default:
			if network, err = s.networkOf(ctx, in, p); err == nil {
				return true
			}
			missing = fmt.Sprintf("the annotation of pod %s is refused: %v; `ovnkube master` rewrites it: "+
				"look whether it runs, and at the pod's events", ref, err)
		}
		return false
	}
	again := func() error {
		ctx, cancel := context.WithTimeout(ctx, recheck)
		defer cancel()
		return s.Pods.WaitPod(ctx, ref.namespace, ref.name, look)
	}
	err := again()
	for err != nil && ctx.Err() == nil {
		err = again()
	}
	if err != nil {
		missing = fmt.Sprintf("%s (%v)", missing, context.Cause(ctx))
	}
	if err != nil || gone {
		err = cniError(protocol.CodeTryAgain, missing, "no address for pod %s", ref)
	}
	return pod, network, err
}

// Why an ADD ends before the runtime has its answer.
var (
	errPodGone        = errors.New("the pod was deleted meanwhile")
	errNetworkChanged = errors.New("the pod's annotation was changed meanwhile")
)

// whilePodLives returns a context that also ends when the pod is deleted or gets another annotation. OVN will not set
// up the port then, since the master removes it or gives it other addresses.
func (s *Server) whilePodLives(
	ctx context.Context, in cluster.Attachment, pod local.Pod, made annotation.PodNetwork,
) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		var cause error
		other := func(p local.Pod, ok bool) bool {
			if cause = errPodGone; !ok || p.UID != pod.UID {
				return true
			}
			cause = errNetworkChanged
			now, ok, err := annotation.PodNetworkIn(p.Network, in.Key())
			return !ok || err != nil || !cluster.SamePodNetwork(now, made)
		}
		if err := s.Pods.WaitPod(ctx, pod.Namespace, pod.Name, other); err == nil {
			cancel(cause)
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-watching
	}
}

func interfaceError(ref podRef, err error) error {
	e := cniError(protocol.CodeInterface, err.Error(), "making the interface of pod %s", ref)
	switch {
	case errors.Is(err, podif.ErrNetns):
		e.Code = protocol.CodeInvalidEnv
		e.Msg += ": CNI_NETNS can't be used"
	case errors.Is(err, podif.ErrExists):
		e.Code = protocol.CodeInvalidEnv
		e.Msg += ": CNI_IFNAME is taken"
	}
	return e
}

// attach adds the interface to br-int and waits for its flows.
func (s *Server) attach(ctx context.Context, ref podRef, logicalPort, uid string, spec podif.Spec) error {
	port := hostplan.PodPort(logicalPort, uid, spec.ID, spec.Network)
	err := s.phase(PhasePort, func() error {
		settled, release := graceful(ctx, settleTimeout)
		defer release()
		return s.Switch.AddPodPort(settled, port)
	})
	if err != nil {
		details := fmt.Sprintf("%v; look whether ovsdb-server and ovs-vswitchd run on this node", err)
		return cniError(protocol.CodeTryAgain, details, "adding the port of pod %s to Open vSwitch", ref)
	}
	s.reached(StepPort)
	return s.phase(PhaseFlows, func() error {
		state, err := s.Switch.WaitInstalled(ctx, port.Name)
		if err == nil {
			s.reached(StepFlows)
			return nil
		}
		return s.notInstalled(ctx, ref, logicalPort, port.Name, state)
	})
}

// graceful returns a context that ends later than ctx by grace. Without it, a transaction that is cancelled on its way
// could still take effect after undo has looked for what to remove.
func graceful(ctx context.Context, grace time.Duration) (context.Context, func()) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(grace):
			cancel()
		case <-later.Done():
		}
	})
	return later, func() {
		stop()
		cancel()
	}
}

// notInstalled returns the error for a port without flows: it says which step is missing.
func (s *Server) notInstalled(ctx context.Context, ref podRef, logicalPort, iface string,
	state ovs.InterfaceState) error {
	e := &protocol.Error{Code: protocol.CodeTryAgain}
	cause := context.Cause(ctx)
	if state.Ofport <= 0 {
		e.Msg = fmt.Sprintf("Open vSwitch has not opened the interface of pod %s", ref)
		e.Details = fmt.Sprintf("interface %s: %q (%v); look whether ovs-vswitchd runs, and at its log", iface, state.Error,
			cause)
		return e
	}
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), ioTimeout)
	defer cancel()
	why := ""
	if s.Binding != nil {
		why = s.Binding(ask, logicalPort)
	}
	if why == "" {
		why = "look whether ovn-controller runs and is connected, and at `ovn-sbctl find Port_Binding logical_port=" +
			logicalPort + "`"
	}
	e.Msg = fmt.Sprintf("OVN has not set up the port of pod %s: not bound, or its flows are not installed", ref)
	e.Details = fmt.Sprintf("logical port %s on interface %s: %s (%v)", logicalPort, iface, why, cause)
	return e
}
