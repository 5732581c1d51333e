package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cni/podif"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// iface is an interface that an ADD makes.
type iface struct {
	spec  podif.Spec
	port  hostplan.Port
	veth  podif.Veth
	ready bool // an earlier ADD has made it
}

// logicalPort is the logical port of the interface.
func (i *iface) logicalPort() string { return i.port.ExternalIDs[names.IfaceID] }

// interfaces are those of a pod with these attachments. The first is the one that the runtime asks for.
func (r *request) interfaces(ref podRef, uid string, settings Settings, networks []attached) []*iface {
	var out []*iface
	for _, a := range networks {
		i := &iface{spec: podif.Spec{
			ID: names.AttachmentID(r.ContainerID, a.Interface), Netns: r.Netns, IfName: cmp.Or(a.Interface, r.IfName),
			Network: a.net, MTU: cmp.Or(a.net.MTU, settings.MTU), Userspace: settings.Userspace,
		}}
		logical := a.Network.LogicalPort(ref.namespace, ref.name, a.Interface)
		i.port = hostplan.PodPort(logical, uid, i.spec.ID, a.net)
		out = append(out, i)
	}
	return out
}

// connect makes the interfaces and connects them to OVN. All ports are there before it waits for the first one's flows,
// so that many interfaces need hardly longer than one. What it has made is in r.made, also after an error.
func (s *Server) connect(ctx context.Context, r *request, ref podRef, ifaces []*iface) error {
	if err := s.phase(PhaseInterface, func() error { return s.makePairs(ctx, r, ref, ifaces) }); err != nil {
		return err
	}
	if err := s.phase(PhasePort, func() error { return s.addPorts(ctx, ref, ifaces) }); err != nil {
		return err
	}
	return s.phase(PhaseFlows, func() error { return s.awaitFlows(ctx, r, ref, ifaces) })
}

// makePairs makes the pairs of the interfaces.
func (s *Server) makePairs(ctx context.Context, r *request, ref podRef, ifaces []*iface) error {
	if !r.delegated {
		s.clear(ctx, r.id)
	}
	for _, i := range ifaces {
		// A pair that is not marked yet has only its name to protect it from the DEL and the GC of other containers.
		unlock := func() {}
		if name := i.port.Name; name != names.HostVeth(r.ContainerID) && !r.delegated {
			var err error
			if unlock, err = s.locks.lock(ctx, name); err != nil {
				return cniError(protocol.CodeTryAgain, err.Error(), "another request for interface %s is at work", name)
			}
		}
		err := s.makePair(r, i)
		unlock()
		if err != nil {
			return interfaceError(ref, r, i, err)
		}
	}
	return nil
}

// clear removes what an agent left that ended in the middle of an earlier ADD of the container: that one may have made
// other interfaces than this.
func (s *Server) clear(ctx context.Context, container string) {
	ids, err := podif.Unfinished(container)
	if err == nil && len(ids) > 0 {
		err = s.remove(ctx, ids...)
	}
	if err != nil {
		s.Log.Warn("what an earlier ADD left could not be removed", "sandbox", container, "error", err)
	}
}

// makePair makes the pair of an interface. A delegated request may ask for one that the ADD of the cluster's own
// network has made: that is no error if it is the one asked for.
func (s *Server) makePair(r *request, i *iface) (err error) {
	if r.delegated {
		i.veth, i.ready, err = podif.Finished(i.spec.ID)
	}
	if err == nil && i.ready {
		if different := errors.Join(podif.Check(i.spec), s.comparePort(i.port)); different != nil {
			err = fmt.Errorf("%w: %s, and it is not the one asked for: %w", podif.ErrExists, i.spec.IfName, different)
		}
		return err
	}
	if err == nil {
		i.veth, err = podif.Add(i.spec, s.reached)
	}
	if err == nil {
		r.made = append(r.made, i.spec.ID)
	}
	return err
}

func interfaceError(ref podRef, r *request, i *iface, err error) error {
	e := cniError(protocol.CodeInterface, oneLine(err), "making the interface of pod %s", ref)
	if i.spec.IfName != r.IfName {
		e.Msg = fmt.Sprintf("making the further interface %s of pod %s", i.spec.IfName, ref)
	}
	switch {
	case errors.Is(err, podif.ErrNetns):
		e.Code = protocol.CodeInvalidEnv
		e.Msg += ": CNI_NETNS can't be used"
	case errors.Is(err, podif.ErrExists) && i.spec.IfName == r.IfName:
		e.Code = protocol.CodeInvalidEnv
		e.Msg += ": CNI_IFNAME is taken"
	}
	return e
}

// addPorts adds the interfaces to br-int.
func (s *Server) addPorts(ctx context.Context, ref podRef, ifaces []*iface) error {
	settled, release := graceful(ctx, settleTimeout)
	defer release()
	for _, i := range ifaces {
		if i.ready {
			continue
		}
		if err := s.Switch.AddPodPort(settled, i.port); err != nil {
			details := fmt.Sprintf("%v; look whether ovsdb-server and ovs-vswitchd run on this node", err)
			return cniError(protocol.CodeTryAgain, details, "adding the port of pod %s to Open vSwitch", ref)
		}
		s.reached(StepPort)
	}
	return nil
}

// awaitFlows waits until ovn-controller has installed the flows of all interfaces.
func (s *Server) awaitFlows(ctx context.Context, r *request, ref podRef, ifaces []*iface) error {
	for _, i := range ifaces {
		state, err := s.Switch.WaitInstalled(ctx, i.port.Name)
		if err != nil {
			return s.notInstalled(ctx, ref, i, state)
		}
		if err := podif.KeepUp(i.spec.ID); err != nil {
			return interfaceError(ref, r, i, err)
		}
		s.reached(StepFlows)
	}
	return nil
}

// announce announces the pod's addresses to other hosts. A failure is no reason to refuse the pod, since OVN answers
// requests for its MAC.
func (s *Server) announce(ifaces []*iface) {
	for _, i := range ifaces {
		if i.ready {
			continue
		}
		if err := podif.Announce(i.spec); err != nil {
			s.Log.Warn("addresses of a pod not announced", "sandbox", i.spec.ID, "error", err)
		}
	}
	s.reached(StepAnnounced)
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
func (s *Server) notInstalled(ctx context.Context, ref podRef, i *iface, state ovs.InterfaceState) error {
	logicalPort, iface := i.logicalPort(), i.port.Name
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
