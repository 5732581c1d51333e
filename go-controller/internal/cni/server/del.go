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

// retryInterval is the pause before the removal of a port is tried again.
const retryInterval = 2 * time.Second

// del removes a container's interface. It always succeeds. If Open vSwitch does not answer, the port is removed later.
func (s *Server) del(ctx context.Context, r request) error {
	if err := podif.Remove(r.id); err != nil {
		s.Log.Warn("interface of a deleted container could not be removed", "sandbox", r.id, "error", err)
	}
	quick, cancel := context.WithTimeout(ctx, delTimeout)
	defer cancel()
	if err := s.removePort(quick, r.id); err != nil {
		s.Log.Warn("port of a deleted container stays until Open vSwitch is back", "sandbox", r.id, "error", err)
		s.removeLater(r.id)
	}
	return nil
}

// remove removes a container's interface and port.
func (s *Server) remove(ctx context.Context, id string) error {
	return errors.Join(podif.Remove(id), s.removePort(ctx, id))
}

func (s *Server) removePort(ctx context.Context, id string) error {
	_, err := s.Switch.RemovePodPorts(ctx, func(sandbox string) bool { return sandbox == id })
	return err
}

// gc removes the interfaces and ports of containers that the runtime no longer knows (CNI specification 1.1.0, section
// 2 "GC"). It continues after an error.
func (s *Server) gc(ctx context.Context, r request) error {
	if r.in.Interface != "" {
		return nil // the list lacks the containers that are not in this network
	}
	valid, err := validContainers(r.Config)
	if err != nil {
		return err
	}
	attachments, err := podif.Attachments()
	errs := []error{err}
	// The ports come first, because they have the full container ids. A container whose ADD ended before its pair was
	// marked has no port, and only the pair's name is known.
	gone := map[string]string{} // name of the node's end -> attachment
	for _, id := range append(s.Switch.Sandboxes(), attachments...) {
		container, _, _ := strings.Cut(id, "/")
		if name := names.HostVeth(id); !valid[names.HostVeth(container)] && gone[name] == "" {
			gone[name] = id
		}
	}
	for name, id := range gone {
		unlock, free := s.locks.tryLock(name)
		if !free {
			continue // its ADD or DEL is running, and cleans up itself
		}
		errs = append(errs, s.remove(ctx, id))
		unlock()
	}
	if err := errors.Join(errs...); err != nil {
		return cniError(protocol.CodeTryAgain, oneLine(err), "some containers' interfaces could not be removed")
	}
	return nil
}

// oneLine joins the lines of an error.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// validContainers reads the containers that GC must keep. The keys of the result are the names of the node's ends of
// their pairs.
func validContainers(config json.RawMessage) (map[string]bool, error) {
	const key = "cni.dev/valid-attachments"
	var conf map[string]json.RawMessage
	if err := decodeConf(config, &conf); err != nil {
		return nil, err
	}
	raw, ok := conf[key]
	if !ok { // unlike an empty list, which is written as [] or null
		return nil, cniError(protocol.CodeInvalidConfig, "", "the network configuration of GC has no %s", key)
	}
	var attachments []struct {
		ContainerID string `json:"containerID"`
	}
	if err := json.Unmarshal(raw, &attachments); err != nil {
		return nil, malformed(key, err)
	}
	valid := map[string]bool{}
	for _, a := range attachments {
		valid[names.HostVeth(a.ContainerID)] = true
	}
	return valid, nil
}

// status returns an error if ADD cannot be served (CNI specification 1.1.0, section 2 "STATUS").
func (s *Server) status() error {
	err := s.Node.Missing()
	if err == nil {
		return nil
	}
	e := cniError(protocol.CodeNotAvailable, oneLine(err), "the node agent can't serve pods yet")
	var limited *LimitedError
	if errors.As(err, &limited) {
		e.Code = protocol.CodeLimited
		e.Msg = "the node agent can't serve pods, and those that run may be without their network"
	}
	return e
}
