package server

import (
	"errors"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/podif"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
)

// checkMacvlan is the error that a pod does not get the macvlan that it asks for. A delegated request is not about it.
func checkMacvlan(r *request, ref podRef, pod local.Pod) error {
	if r.delegated || pod.NoMacvlan == "" {
		return nil
	}
	return cniError(protocol.CodeInterface, "annotation "+annotation.PodMacvlan+": "+pod.NoMacvlan,
		"pod %s does not get a macvlan", ref)
}

// addMacvlan makes the macvlan that a pod asks for.
func addMacvlan(r *request, ref podRef, pod local.Pod) error {
	if r.delegated || pod.Macvlan == "" {
		return nil
	}
	r.macvlan = true
	err := podif.AddMacvlan(r.ContainerID, r.Netns, pod.Macvlan)
	if err == nil {
		return nil
	}
	e := cniError(protocol.CodeInterface, oneLine(err), "making the macvlan of pod %s on interface %q of the node", ref,
		pod.Macvlan)
	if errors.Is(err, podif.ErrParent) {
		e.Details += "; see annotation " + annotation.PodMacvlan
	}
	return e
}

// removeMacvlan removes the macvlan of a container. The kernel does so with the container's namespace, too.
func (s *Server) removeMacvlan(r *request) {
	if r.delegated || r.Netns == "" {
		return
	}
	if err := podif.RemoveMacvlan(r.ContainerID, r.Netns); err != nil {
		s.Log.Warn("macvlan of a container could not be removed", "sandbox", r.id, "error", err)
	}
}
