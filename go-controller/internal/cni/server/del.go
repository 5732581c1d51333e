package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cni/podif"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// retryInterval is the pause before the removal of a port is tried again.
const retryInterval = 2 * time.Second

// del removes a container's interfaces, or the one that a delegated request is about. It always succeeds. If Open
// vSwitch does not answer, the ports are removed later.
func (s *Server) del(ctx context.Context, r *request) error {
	if err := s.removePairs(r); err != nil {
		s.Log.Warn("interfaces of a deleted container could not be removed", "sandbox", r.id, "error", err)
	}
	s.removeMacvlan(r)
	quick, cancel := context.WithTimeout(ctx, delTimeout)
	defer cancel()
	if err := s.removePorts(quick, r.id); err != nil {
		s.Log.Warn("ports of a deleted container stay until Open vSwitch is back", "sandbox", r.id, "error", err)
		s.removeLater(r.id)
	}
	return nil
}

// removePairs removes the pairs that a request is about. The caller holds the container's lock.
func (s *Server) removePairs(r *request) error {
	if r.delegated {
		return podif.Remove(r.id)
	}
	ids, err := podif.AttachmentsOf(r.id)
	errs := []error{err}
	for _, id := range ids {
		if name := names.HostVeth(id); name != names.HostVeth(r.id) {
			unlock, free := s.locks.tryLock(name)
			if !free {
				continue // the ADD of another container, whose id begins alike, is making this pair
			}
			defer unlock()
		}
		errs = append(errs, podif.Remove(id))
	}
	return errors.Join(append(errs, podif.Remove(r.id))...) // also if the list could not be had
}

// remove removes the pairs and ports of attachments.
func (s *Server) remove(ctx context.Context, ids ...string) error {
	var errs []error
	for _, id := range slices.Backward(ids) { // the first one tells that there are more, see podif.Unfinished
		errs = append(errs, podif.Remove(id))
	}
	_, err := s.Switch.RemovePodPorts(ctx, func(sandbox string) bool { return slices.Contains(ids, sandbox) })
	return errors.Join(append(errs, err)...)
}

// removePorts removes the ports that a request with this id is about.
func (s *Server) removePorts(ctx context.Context, id string) error {
	_, err := s.Switch.RemovePodPorts(ctx, func(sandbox string) bool { return concerns(id, sandbox) })
	return err
}

// gc removes the interfaces and ports of containers that the runtime no longer knows (CNI specification 1.1.0, section
// 2 "GC"). It continues after an error.
func (s *Server) gc(ctx context.Context, r *request) error {
	if r.delegated {
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
		if name := names.HostVeth(id); !valid[names.HostVeth(names.ContainerOf(id))] && gone[name] == "" {
			gone[name] = id
		}
	}
	for name, id := range gone {
		unlock, free := s.locks.tryLockAll(names.HostVeth(names.ContainerOf(id)), name)
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
