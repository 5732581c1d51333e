package server

import (
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// checkMappings is the error that this node has no bridge for a network outside that an interface is joined to. Without
// it OVN would carry the packets in tunnels, and the pod would seem to work.
func (s *Server) checkMappings(ref podRef, networks []attached) error {
	for _, a := range networks {
		if a.net.Physical == "" {
			continue
		}
		value, err := s.Switch.ExternalID(names.OVSBridgeMappings)
		if err != nil {
			return cniError(protocol.CodeTryAgain, err.Error(), "reading external_ids:%s", names.OVSBridgeMappings)
		}
		if !slices.Contains(config.MappedNetworks(value), a.net.Physical) {
			return cniError(protocol.CodeTryAgain, fmt.Sprintf("external_ids:%s is %q, want %s:BRIDGE in it: see "+
				"--bridge-mappings of the node agent", names.OVSBridgeMappings, value, a.net.Physical),
				"interface %s of pod %s: this node has no bridge for physical network %s", a.Interface, ref, a.net.Physical)
		}
	}
	return nil
}
