package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// decodeConf decodes the network configuration.
func decodeConf(raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return cniError(protocol.CodeDecoding, err.Error(), "decoding the network configuration")
	}
	return nil
}

// malformed is the error for a field of the network configuration.
func malformed(field string, err error) error {
	return cniError(protocol.CodeInvalidConfig, err.Error(), "%s in the network configuration is malformed", field)
}

// parseConf reads the network configuration and its prevResult (CNI specification 1.1.0, section 1 and 2).
func parseConf(raw json.RawMessage) (types.NetConf, *types100.Result, error) {
	var c types.NetConf
	if err := decodeConf(raw, &c); err != nil || c.RawPrevResult == nil {
		return c, nil, err
	}
	if err := version.ParsePrevResult(&c); err != nil {
		return c, nil, malformed("prevResult", err)
	}
	prev, err := types100.NewResultFromResult(c.PrevResult)
	if err != nil {
		return c, nil, malformed("prevResult", err)
	}
	if slices.Contains(prev.Interfaces, nil) || slices.Contains(prev.IPs, nil) || slices.Contains(prev.Routes, nil) {
		return c, nil, malformed("prevResult", errors.New("an entry of interfaces, ips or routes is null"))
	}
	return c, prev, nil
}

// request is a request, and the attachment that it is about.
type request struct {
	protocol.Request
	in cluster.Attachment
	id string // names.AttachmentID
	// delegated is true for the request of a plugin such as Multus, which asks for one further interface. Other requests
	// are about all interfaces of the container.
	delegated bool
	// oneByOne is true for an ADD of the cluster's own network before which Multus stands: it asks for the interfaces that
	// the pod's author asks for, each by a delegated request. Multus refuses to ask for one that is there already.
	oneByOne bool
	made     []string // the attachments that an ADD has made, by id
	macvlan  bool     // an ADD has made, or tried to make, the macvlan
}

// requestOf reads from the network configuration which attachment a request is about: that to the cluster's own network
// unless the field network names another. The configuration of a NetworkAttachmentDefinition may have netAttachDefName.
// One without that is known by its type: it is about the interface, in the network that the pod's annotation has for
// it. A malformed configuration is reported by the command, unless that is DEL.
func requestOf(r protocol.Request) *request {
	out := &request{Request: r, in: cluster.Attachment{Network: names.Own}}
	var conf struct {
		Type             string
		Network          names.Network
		NetAttachDefName string
	}
	err := json.Unmarshal(r.Config, &conf)
	if namespace, name, ok := strings.Cut(conf.NetAttachDefName, "/"); ok && conf.Network == "" {
		conf.Network = names.Defined(namespace, name)
	}
	if err == nil && (conf.Network != "" || conf.Type == names.OverlayPlugin) {
		out.in, out.delegated = cluster.Attachment{Network: conf.Network, Interface: r.IfName}, true
	}
	out.id = names.AttachmentID(r.ContainerID, out.in.Interface)
	return out
}

// concerns tells whether a request is about an attachment.
func concerns(id, attachment string) bool {
	return attachment == id || names.ContainerOf(attachment) == id
}

// podRef is the pod that the runtime names in CNI_ARGS.
type podRef struct{ namespace, name, uid string }

func (p podRef) String() string { return p.namespace + "/" + p.name }

// parsePod reads CNI_ARGS, "K8S_POD_NAMESPACE=ns;K8S_POD_NAME=name;K8S_POD_UID=uid;...".
func parsePod(args string) (podRef, error) {
	var p podRef
	for _, pair := range strings.Split(args, ";") {
		key, value, _ := strings.Cut(pair, "=")
		switch key {
		case "K8S_POD_NAMESPACE":
			p.namespace = value
		case "K8S_POD_NAME":
			p.name = value
		case "K8S_POD_UID":
			p.uid = value
		}
	}
	if p.namespace == "" || p.name == "" {
		return p, cniError(protocol.CodeInvalidEnv, fmt.Sprintf("CNI_ARGS=%q; this network is for pods", args),
			"CNI_ARGS has no K8S_POD_NAMESPACE or no K8S_POD_NAME")
	}
	return p, nil
}
