package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

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

// gc removes what belongs to containers that the runtime no longer knows (CNI
// specification 1.1.0, section 2 "GC"). One that can't be removed does not keep
// the others.
func (s *Server) gc(ctx context.Context, r protocol.Request) error {
	valid, err := validContainers(r.Config)
	if err != nil {
		return err
	}
	containers, err := podif.Containers()
	errs := []error{err}
	// The ports come first: a container whose ADD was cut short before its pair
	// was marked is known by the pair's name only, and has no port.
	gone := map[string]string{} // name of the node's end -> container
	for _, id := range append(s.Switch.Sandboxes(), containers...) {
		if name := names.HostVeth(id); !valid[name] && gone[name] == "" {
			gone[name] = id
		}
	}
	for name, id := range gone {
		unlock, free := s.locks.tryLock(name)
		if !free {
			continue // its ADD or DEL is at work: neither leaves what nobody wants
		}
		errs = append(errs, s.remove(ctx, id))
		unlock()
	}
	if err := errors.Join(errs...); err != nil {
		return &protocol.Error{Code: protocol.CodeTryAgain, Msg: "some containers' interfaces could not be removed", Details: oneLine(err)}
	}
	return nil
}

// oneLine is the text of joined errors, for a message.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// validContainers reads which containers GC must leave alone, by the names of
// the node's ends of their pairs.
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
		valid[names.HostVeth(a.ContainerID)] = true
	}
	return valid, nil
}

// status tells whether ADD can be served (CNI specification 1.1.0, section 2
// "STATUS").
func (s *Server) status() error {
	err := s.Node.Missing()
	if err == nil {
		return nil
	}
	e := &protocol.Error{Code: protocol.CodeNotAvailable, Msg: "the node agent can't serve pods yet", Details: oneLine(err)}
	var limited *LimitedError
	if errors.As(err, &limited) {
		e.Code, e.Msg = protocol.CodeLimited, "the node agent can't serve pods, and those that run may be without their network"
	}
	return e
}
