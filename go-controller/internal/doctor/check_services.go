package doctor

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostfacts"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// checkServicePorts compares the nftables chains and sets for services with the plan of
// `ovnkube node`.
func checkServicePorts(_ context.Context, h *facts) Finding {
	switch {
	case !h.c.Kubernetes:
		return unchecked("no API server is given, which knows the services")
	case h.apiErr != nil || h.nodeErr != nil:
		return unchecked("the API server does not tell the services")
	case errors.Is(h.servedErr, reflector.ErrRefused):
		return problem("%v", h.servedErr).fixed("kubectl create clusterrolebinding northbound-node-proxier " +
			"--clusterrole=system:node-proxier --group=system:nodes  # if the agent uses the kubelet's identity")
	case h.servedErr != nil:
		return unchecked("%v", h.servedErr)
	case len(h.subnets) == 0 || h.planErr != nil:
		return unchecked("the node's subnets are not known")
	}
	facts := serviceport.Facts{Endpoints: h.served.Endpoints, Exits: h.served.Exits, Own: h.subnets,
		Held: h.held().Holders(h.c.Node.Name)}
	plan, _ := serviceport.Plan(h.served.Services, facts, h.c.Node) // the agent reports what can't be served
	have, err := h.t.Kernel.Read(plan.Host)
	if err != nil {
		return unchecked("%v", err)
	}
	// Other nodes' addresses are not asked for. EndpointSlices may not be readable
	// either.
	kinds := func(k hostplan.ServiceEntryKind) bool {
		return k == hostplan.ExemptEntry || k.Remote() || h.served.Endpoints == nil && k.OfEndpoints()
	}
	plan = serviceport.Retain(plan, have, kinds)
	changes, _ := item.Diff(plan.Host, have)
	f := faults{fixes: []string{
		"# `ovnkube node` keeps this: does it run, and what does it log of services? " +
			"systemctl restart ovnkube-node",
		"nft list table inet northbound"}}
	for _, c := range changes {
		if about(plan.Host[0].Key())(c) { // our routes are of another check
			f.add(serviceDifference(c))
		}
	}
	return f.finding("%d entries of the services that are reached from outside",
		plan.Host[0].(hostplan.ServicePorts).Count())
}

// held is the addresses that the agent gives to no service, as far as they are known without asking for names.
func (h *facts) held() hostfacts.Held {
	out := hostfacts.Held{API: slices.Clone(h.served.APIServers), Own: hostfacts.Addrs(h.node.InternalIPs)}
	for _, remote := range []string{h.ids[names.OVSRemote], h.ids[names.OVSNorthbound]} {
		for _, host := range config.RemoteHosts(remote) {
			if to, err := netip.ParseAddrPort(host); err == nil {
				out.Databases = append(out.Databases, to.Addr())
			}
		}
	}
	if u, err := url.Parse(h.answer.Server); err == nil {
		out.API = append(out.API, hostfacts.Addrs([]string{u.Hostname()})...)
	}
	for _, i := range h.interfaces {
		out.Tunnels = append(out.Tunnels, hostfacts.Addrs([]string{i.Map("options")["remote_ip"]})...)
	}
	return out
}

// serviceDifference is a change in words: what is there, and what should be.
func serviceDifference(c item.Change) string {
	want, _ := c.Want.(hostplan.ServicePorts)
	have, there := c.Have.(hostplan.ServicePorts)
	switch {
	case !there:
		return "there are no chains for services in table inet northbound, want " + want.String()
	case have.WithoutEntries() == hostplan.ServicePorts{}:
		return "the chains for services in table inet northbound are not as this version writes them"
	case have.WithoutEntries() == want.WithoutEntries():
		return "to be changed: " + c.String()
	}
	return difference(c)
}
