package service

import (
	"strconv"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Affinity is how a client keeps its backend.
type Affinity int

// The ways. OVN's own timer is exact, but has a price: the packet by which OVN
// learns of a client is dropped (the logical flow with commit_lb_aff goes no
// further, in 23.03 and 25.03), and with the userspace datapath so is whatever
// repeats it, which is that connection. It is used where the time matters.
const (
	NoAffinity    Affinity = iota
	AffinityHash           // by the client's address alone, for as long as the endpoints are the same ones
	AffinityTimer          // for a time, which OVN keeps
)

// longAffinity is the time from which a client may as well keep its backend for
// good: the API's default (ClientIPConfig.timeoutSeconds). All that OVN's timer
// can't hold, which is more than 65535 seconds (ovn-nb(5)), is longer.
const longAffinity = 10800

// AffinityOf is how clients of a service keep their backend.
func AffinityOf(svc *cluster.Service) Affinity {
	switch {
	case svc.AffinitySeconds == 0:
		return NoAffinity
	case svc.AffinitySeconds < longAffinity:
		return AffinityTimer
	}
	return AffinityHash
}

// options is the options of the service's load balancers of a protocol. A UDP
// flow has no end: with ct_flush, ovn-controller makes connection tracking
// forget those of a backend that goes, so that the next packet finds another.
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

// selectionFields are what a backend is chosen by. That the load balancer names
// them at all spares the userspace datapath a recirculation, of which it has
// only a few.
func selectionFields(svc *cluster.Service) []string {
	if AffinityOf(svc) == AffinityHash {
		return []string{"ip_src"}
	}
	return []string{"ip_dst", "ip_src", "tp_dst", "tp_src"}
}
