package server

import (
	"context"
	"errors"
	"fmt"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/podif"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// check compares the pod's network with the result of ADD, which is in the configuration.
func (s *Server) check(ctx context.Context, r *request) error {
	_, prev, err := parseConf(r.Config)
	if err != nil {
		return err
	}
	if prev == nil {
		return cniError(protocol.CodeInvalidConfig, "", "the network configuration of CHECK has no prevResult")
	}
	ref, err := parsePod(r.Args)
	if err != nil {
		return err
	}
	spec, err := specOf(prev, r)
	if err != nil {
		return cniError(protocol.CodeInvalidConfig, err.Error(), "prevResult is not this plugin's")
	}
	if !s.Switch.Connected() {
		return cniError(protocol.CodeTryAgain, "look whether ovsdb-server runs on this node",
			"the port of pod %s can't be looked at: Open vSwitch does not answer", ref)
	}
	if s.Node.Missing() == nil {
		settings, err := s.settings(ctx)
		if err != nil {
			return err
		}
		spec.Userspace = settings.Userspace
	}
	if err := s.compare(ctx, r, ref, spec); err != nil {
		return cniError(protocol.CodeCheck, oneLine(err), "the network of pod %s is not as it was made", ref)
	}
	return nil
}

// compare compares the interface that prevResult describes, and its port. It compares the further interfaces with the
// pod's annotation, since prevResult does not have them.
func (s *Server) compare(ctx context.Context, r *request, ref podRef, spec podif.Spec) error {
	pod, known := s.podNow(ctx, ref)
	errs := []error{podif.Check(spec)}
	networks, err := r.attachments(pod.Network)
	in := r.in
	if r.delegated && err == nil {
		in = networks[0].Attachment
	}
	if in.Network != "" {
		port := in.Network.LogicalPort(ref.namespace, ref.name, in.Interface)
		errs = append(errs, s.checkPort(hostplan.PodPort(port, pod.UID, spec.ID, spec.Network)))
	}
	switch {
	case !known || r.delegated || errors.Is(errs[0], podif.ErrNetns):
		return errors.Join(errs...)
	case err != nil && annotation.AnyWaits(pod.Network): // a network is gone: a pod that runs is not concerned
		return errors.Join(errs...)
	case err != nil:
		return errors.Join(append(errs, fmt.Errorf("the further interfaces can't be compared: %w", err))...)
	}
	settings := Settings{MTU: spec.MTU, Userspace: spec.Userspace}
	for _, i := range r.interfaces(ref, pod.UID, settings, networks[1:]) {
		errs = append(errs, podif.Check(i.spec), s.checkPort(i.port))
	}
	return errors.Join(errs...)
}

// checkPort compares the port in Open vSwitch with one whose flows are installed.
func (s *Server) checkPort(want hostplan.Port) error {
	want.ExternalIDs[names.IfaceInstalled] = "true"
	return s.comparePort(want)
}

// comparePort compares the port in Open vSwitch.
func (s *Server) comparePort(want hostplan.Port) error {
	state, ok := s.Switch.Interface(want.Name)
	if !ok {
		return fmt.Errorf("interface %s is not in Open vSwitch", want.Name)
	}
	var errs []error
	if state.Bridge != want.Bridge {
		errs = append(errs, fmt.Errorf("interface %s is on bridge %q, want %s", want.Name, state.Bridge, want.Bridge))
	}
	if state.Ofport <= 0 {
		errs = append(errs, fmt.Errorf("interface %s is not open in Open vSwitch: %q", want.Name, state.Error))
	}
	for key, value := range want.ExternalIDs {
		if have := state.ExternalIDs[key]; have != value && (key != names.IfaceIDVer || value != "") {
			errs = append(errs, fmt.Errorf("interface %s has external_ids:%s=%q, want %q", want.Name, key, have, value))
		}
	}
	return errors.Join(errs...)
}

// podNow returns the pod that the runtime names, if the agent's watch has it.
func (s *Server) podNow(ctx context.Context, ref podRef) (pod local.Pod, known bool) {
	// The callback accepts at once, so that there is no wait and no error.
	_ = s.Pods.WaitPod(ctx, ref.namespace, ref.name, func(p local.Pod, ok bool) bool {
		if ok && p.HasUID(ref.uid) {
			pod, known = p, true
		}
		return true
	})
	return pod, known
}

// specOf returns the interface that a result describes.
func specOf(prev *types100.Result, r *request) (podif.Spec, error) {
	spec := podif.Spec{ID: r.id, Netns: r.Netns, IfName: r.IfName}
	index := -1
	for i, iface := range prev.Interfaces {
		if iface.Name == r.IfName && iface.Sandbox != "" {
			index = i
		}
	}
	if index < 0 {
		return spec, fmt.Errorf("it has no interface %s in a container", r.IfName)
	}
	spec.MTU = prev.Interfaces[index].Mtu
	return spec, podif.ReadResult(&spec, prev, index)
}
