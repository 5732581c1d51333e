package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/northbound-net/northbound/go-controller/internal/cni/podif"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// retryInterval is how often a removal that Open vSwitch did not take is tried
// again.
const retryInterval = 2 * time.Second

// del takes a container's interface away. It succeeds whatever is left of the
// container; what Open vSwitch does not take now it gets as soon as it is back.
func (s *Server) del(ctx context.Context, r protocol.Request) error {
	if err := podif.Remove(r.ContainerID); err != nil {
		s.Log.Warn("interface of a deleted container could not be removed", "sandbox", r.ContainerID, "error", err)
	}
	quick, cancel := context.WithTimeout(ctx, delTimeout)
	defer cancel()
	if err := s.removePort(quick, r.ContainerID); err != nil {
		s.Log.Warn("port of a deleted container stays until Open vSwitch is back", "sandbox", r.ContainerID, "error", err)
		s.removeLater(r.ContainerID)
	}
	return nil
}

// remove undoes ADD.
func (s *Server) remove(ctx context.Context, containerID string) error {
	return errors.Join(podif.Remove(containerID), s.removePort(ctx, containerID))
}

func (s *Server) removePort(ctx context.Context, containerID string) error {
	_, err := s.Switch.RemovePodPorts(ctx, func(sandbox string) bool { return sandbox == containerID })
	return err
}

// gc removes the ports of containers that the runtime no longer knows (CNI
// specification 1.1.0, section 2 "GC"). One that can't be removed does not keep
// the others.
func (s *Server) gc(ctx context.Context, r protocol.Request) error {
	valid, err := validContainers(r.Config)
	if err != nil {
		return err
	}
	var errs []error
	for _, sandbox := range s.Switch.Sandboxes() {
		if !valid[sandbox] {
			errs = append(errs, s.remove(ctx, sandbox))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &protocol.Error{Code: protocol.CodeTryAgain, Msg: "some containers' interfaces could not be removed", Details: err.Error()}
	}
	return nil
}

// validContainers reads the ids of the containers that GC must leave alone.
func validContainers(config json.RawMessage) (map[string]bool, error) {
	const key = "cni.dev/valid-attachments"
	var conf map[string]json.RawMessage
	if err := json.Unmarshal(config, &conf); err != nil {
		return nil, &protocol.Error{Code: protocol.CodeDecoding, Msg: "decoding the network configuration", Details: err.Error()}
	}
	raw, ok := conf[key]
	if !ok { // not the same as an empty list, which is written [] or null
		return nil, &protocol.Error{Code: protocol.CodeInvalidConfig, Msg: "the network configuration of GC has no " + key}
	}
	var attachments []struct {
		ContainerID string `json:"containerID"`
	}
	if err := json.Unmarshal(raw, &attachments); err != nil {
		return nil, &protocol.Error{Code: protocol.CodeInvalidConfig, Msg: key + " in the network configuration is malformed", Details: err.Error()}
	}
	valid := map[string]bool{}
	for _, a := range attachments {
		valid[a.ContainerID] = true
	}
	return valid, nil
}

// status tells whether ADD can be served (CNI specification 1.1.0, section 2
// "STATUS").
func (s *Server) status() error {
	if err := s.Node.Missing(); err != nil {
		return &protocol.Error{Code: protocol.CodeNotAvailable, Msg: "the node agent can't serve pods yet", Details: err.Error()}
	}
	return nil
}

// check verifies that everything is as ADD's result, which the configuration
// carries, says.
func (s *Server) check(r protocol.Request) error {
	_, prev, err := parseConf(r.Config)
	if err != nil {
		return err
	}
	if prev == nil {
		return &protocol.Error{Code: protocol.CodeInvalidConfig, Msg: "the network configuration of CHECK has no prevResult"}
	}
	ref, err := parsePod(r.Args)
	if err != nil {
		return err
	}
	spec, err := specOf(prev, r)
	if err != nil {
		return &protocol.Error{Code: protocol.CodeInvalidConfig, Msg: "prevResult is not this plugin's", Details: err.Error()}
	}
	if err := errors.Join(podif.Check(spec), s.checkPort(ref, r.ContainerID)); err != nil {
		return &protocol.Error{
			Code: protocol.CodeCheck, Msg: fmt.Sprintf("the network of pod %s is not as it was made", ref),
			Details: strings.ReplaceAll(err.Error(), "\n", "; "),
		}
	}
	return nil
}

// checkPort compares the Open vSwitch side.
func (s *Server) checkPort(ref podRef, containerID string) error {
	name := names.HostVeth(containerID)
	state, ok := s.Switch.Interface(name)
	if !ok {
		return fmt.Errorf("interface %s is not in Open vSwitch", name)
	}
	var errs []error
	if state.Bridge != names.IntegrationBridge {
		errs = append(errs, fmt.Errorf("interface %s is on bridge %q, want %s", name, state.Bridge, names.IntegrationBridge))
	}
	for key, want := range map[string]string{
		names.IfaceID: names.LogicalPort(ref.namespace, ref.name), names.IfaceSandbox: containerID, names.IfaceInstalled: "true",
	} {
		if have := state.ExternalIDs[key]; have != want {
			errs = append(errs, fmt.Errorf("interface %s has external_ids:%s=%q, want %q", name, key, have, want))
		}
	}
	return errors.Join(errs...)
}

// specOf is the interface that a result describes.
func specOf(prev *types100.Result, r protocol.Request) (podif.Spec, error) {
	spec := podif.Spec{ContainerID: r.ContainerID, Netns: r.Netns, IfName: r.IfName}
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
