package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/podif"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
)

// add makes a container's interfaces, and returns the CNI result as JSON. The result has only the interface that the
// runtime asks for: runtimes take the pod's addresses from it.
func (s *Server) add(ctx context.Context, r *request) (result json.RawMessage, err error) {
	conf, prev, err := parseConf(r.Config)
	if err != nil {
		return nil, err
	}
	ref, err := parsePod(r.Args)
	if err != nil {
		return nil, err
	}
	r.oneByOne = !r.delegated && s.MultusFirst != nil && s.MultusFirst()
	var settings Settings
	err = s.phase(PhaseAgent, func() (err error) { settings, err = s.settings(ctx); return err })
	if err != nil {
		return nil, err
	}
	var pod local.Pod
	var networks []attached
	err = s.phase(PhaseAnnotation, func() (err error) { pod, networks, err = s.awaitNetworks(ctx, r, ref); return err })
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkMacvlan(r, ref, pod), s.checkMappings(ref, networks)); err != nil {
		return nil, err
	}
	ctx, release := s.whilePodLives(ctx, r, pod, networks)
	defer release()
	ifaces := r.interfaces(ref, pod.UID, settings, networks)
	if err = s.connect(ctx, r, ref, ifaces); err == nil {
		err = s.confirm(ctx, r, ref, pod, networks)
	}
	if err == nil {
		err = addMacvlan(r, ref, pod)
	}
	if err == nil {
		s.announce(ifaces)
		result, err = marshalResult(conf.CNIVersion, addResult(conf, prev, ifaces[0].spec, ifaces[0].veth))
	}
	if err != nil {
		if r.macvlan { // else it is that of an earlier ADD, which a container may use
			s.removeMacvlan(r)
		}
		s.undo(ctx, r.made)
		return nil, err
	}
	return result, nil
}

// reached tells a test which step ADD has finished.
func (s *Server) reached(step string) {
	if s.Reached != nil {
		s.Reached(step)
	}
}

// finish ends a successful ADD, which has made these attachments. It undoes the ADD if the runtime did not get the
// answer.
func (s *Server) finish(ctx context.Context, made []string, delivered bool) {
	if !delivered {
		s.undo(ctx, made)
		return
	}
	s.reached(StepAnswered)
	for _, id := range made { // in their order, see podif.Unfinished
		if err := podif.Finish(id); err != nil {
			s.Log.Warn("interface of a container not marked as finished", "sandbox", id, "error", err)
		}
	}
}

// undo removes the attachments that an ADD made, even if ctx has ended.
func (s *Server) undo(ctx context.Context, made []string) {
	if len(made) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := s.remove(ctx, made...); err != nil {
		s.Log.Warn("undoing an ADD left something for DEL", "sandbox", made[0], "error", err)
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

// awaitNetworks waits until the pod that the runtime names has a valid annotation. It waits also while the annotation
// is malformed or refused, since the master rewrites it.
func (s *Server) awaitNetworks(ctx context.Context, r *request, ref podRef) (local.Pod, []attached, error) {
	var pod local.Pod
	var networks []attached
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
			if networks, err = s.networksOf(ctx, r, p); err == nil {
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
	return pod, networks, err
}

// Why an ADD ends before the runtime has its answer.
var (
	errPodGone        = errors.New("the pod was deleted meanwhile")
	errNetworkChanged = errors.New("the pod's annotation was changed meanwhile")
)

// whilePodLives returns a context that also ends when the pod is deleted or gets another annotation. OVN will not set
// up the port then, since the master removes it or gives it other addresses.
func (s *Server) whilePodLives(
	ctx context.Context, r *request, pod local.Pod, made []attached,
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
			now, err := r.attachments(p.Network)
			return err != nil || !slices.EqualFunc(now, made, sameAttached)
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
