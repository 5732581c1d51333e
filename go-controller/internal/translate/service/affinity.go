package service

import (
	"strconv"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Affinity is the way in which a client keeps its backend.
type Affinity int

// The kinds of affinity. OVN's own timer is exact, but OVN drops the packet by which it learns of a client: the logical
// flow with commit_lb_aff goes no further, in 23.03 and 25.03. With the userspace datapath it also drops what repeats
// that packet, which is the whole connection. So the timer is used only where the time matters.
const (
	NoAffinity    Affinity = iota
	AffinityHash           // by a hash of the client's address, while the endpoints stay the same
	AffinityTimer          // by OVN's timer
)

// longAffinity is the timeout from which a client may as well keep its backend for ever: the API's default
// (ClientIPConfig.timeoutSeconds). OVN's timer holds up to 65535 seconds (ovn-nb(5)), which is longer.
const longAffinity = 10800

// AffinityOf is the affinity of a service's clients.
func AffinityOf(svc *cluster.Service) Affinity {
	switch {
	case svc.AffinitySeconds == 0:
		return NoAffinity
	case svc.AffinitySeconds < longAffinity:
		return AffinityTimer
	}
	return AffinityHash
}

// options is the options of the service's load balancers of a protocol. A UDP flow has no end: with ct_flush,
// ovn-controller deletes the flows of a removed backend from connection tracking, so that the next packet gets another
// backend.
func options(svc *cluster.Service, proto cluster.Protocol) map[string]string {
	out := map[string]string{"hairpin_snat_ip": hairpinSNAT, "reject": "true"}
	if proto == cluster.UDP {
		out["ct_flush"] = "true"
	}
	if AffinityOf(svc) == AffinityTimer {
		out["affinity_timeout"] = strconv.Itoa(svc.AffinitySeconds)
	}
	return out
}

// selectionFields are the fields whose hash chooses a backend. Naming any fields saves the userspace datapath one of
// its few recirculations.
func selectionFields(svc *cluster.Service) []string {
	if AffinityOf(svc) == AffinityHash {
		return []string{"ip_src"}
	}
	return []string{"ip_dst", "ip_src", "tp_dst", "tp_src"}
}
