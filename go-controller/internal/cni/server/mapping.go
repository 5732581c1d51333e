package server

import (
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// checkMappings is the error that this node has no bridge for a network outside that an interface is joined to. Without
// it OVN would carry the packets in tunnels, and the pod would seem to work.
func (s *Server) checkMappings(ref podRef, networks []attached) error {
	for _, a := range networks {
		if a.net.Physical == "" {
			continue
		}
		bridged, err := ovs.PhysicalNetworks(s.Switch)
		if err != nil {
			return cniError(protocol.CodeTryAgain, err.Error(), "interface %s of pod %s: cannot tell whether this node has a "+
				"bridge for physical network %s", a.Interface, ref, a.net.Physical)
		}
		if !slices.Contains(bridged, a.net.Physical) {
			return cniError(protocol.CodeTryAgain, fmt.Sprintf("want %s:BRIDGE in external_ids:%s, and that bridge in Open "+
				"vSwitch: see --bridge-mappings of the node agent", a.net.Physical, names.OVSBridgeMappings),
				"interface %s of pod %s: this node has no bridge for physical network %s", a.Interface, ref, a.net.Physical)
		}
	}
	return nil
}
