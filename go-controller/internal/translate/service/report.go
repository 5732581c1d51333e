package service

import (
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// The reasons of reports: another Service has an address and port of this one; an external address is somebody else's,
// or not allowed; the Service asks for more than the limits allow; its pods are in
// a primary network, in which not all of it is served.
const (
	ReasonAddressInUse     = "AddressInUse"
	ReasonAddressRefused   = "ExternalAddressRefused"
	ReasonTooManyVIPs      = "TooManyVirtualAddresses"
	ReasonTooManyEndpoints = "TooManyEndpoints"
	ReasonNotServed        = "ServiceNotServed"
)

// mostListed is how many lost addresses a report spells out.
const mostListed = 4

// lostVIPs reports which addresses and ports of a Service another Service has.
func lostVIPs(s *cluster.State, svc *cluster.Service, addrs []cluster.ServiceAddr) []cluster.Problem {
	var lost []string
	holders := index.VIPsOf(s)
	for _, v := range svc.VIPs(addrs) {
		if h := holders.Holder(v); h != svc {
			lost = append(lost, fmt.Sprintf("%s is of Service %s", v, h.Name))
		}
	}
	slices.Sort(lost)
	return report(svc, ReasonAddressInUse, lost,
		": want an address and port that no other service has: it does not answer there")
}

// refused reports which external addresses of a Service it may not have.
func refused(svc *cluster.Service, addrs []cluster.ServiceAddr) []cluster.Problem {
	var list []string
	for _, a := range addrs {
		if a.Withheld.Refused() {
			list = append(list, fmt.Sprintf("%s: %s: %s", a.Origin, a.Addr, a.Withheld))
		}
	}
	return report(svc, ReasonAddressRefused, list,
		": want an address that nobody else has and that --external-ip-cidrs allows: the service does not answer there")
}

// overLimits reports that a Service asks for more than it may have; left is how many endpoints do not serve for that.
func overLimits(c config.Services, svc *cluster.Service, left int) []cluster.Problem {
	var vips, endpoints []string
	if excess := svc.Excess(c); excess != "" {
		vips = []string{excess}
	}
	if left > 0 {
		endpoints = []string{fmt.Sprintf("%d endpoints too many: want at most --max-service-endpoints %d for a service of "+
			"up to 10 addresses x ports, and fewer for more of them: these endpoints do not serve", left, c.MaxEndpoints)}
	}
	return append(report(svc, ReasonTooManyVIPs, vips, ""), report(svc, ReasonTooManyEndpoints, endpoints, "")...)
}

// unserved reports that a service of a namespace with a primary network does not answer.
func unserved(svc *cluster.Service, why string) []cluster.Problem {
	return report(svc, ReasonNotServed, []string{why}, ": the service does not answer")
}

// partly reports what of a service is not served in a primary network.
func partly(n *cluster.Network, svc *cluster.Service, addrs []cluster.ServiceAddr) []cluster.Problem {
	if n.Hosts {
		return nil
	}
	var list []string
	for _, a := range addrs {
		if a.Withheld == cluster.NotInPrimary {
			list = append(list, fmt.Sprintf("%s: %s", a.Origin, a.Addr))
		}
	}
	if svc.HealthCheck.Interval > 0 {
		list = append(list, "metadata.annotations: "+annotation.ServiceHealthCheck)
	}
	return report(svc, ReasonNotServed, list, ": it is not served, because the pods of the namespace are in a primary "+
		"network: from outside it takes node ports")
}

// report is a Problem that lists what is wrong, and then what would be right; none when nothing is wrong.
func report(svc *cluster.Service, reason string, wrong []string, right string) []cluster.Problem {
	if len(wrong) == 0 {
		return nil
	}
	if len(wrong) > mostListed {
		wrong = append(wrong[:mostListed], fmt.Sprintf("and %d more", len(wrong)-mostListed))
	}
	return []cluster.Problem{{Ref: svc.Ref(), UID: svc.UID, Reason: reason, Message: strings.Join(wrong, ", ") + right}}
}
