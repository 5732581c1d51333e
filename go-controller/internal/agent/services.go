package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/all"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
)

// servicePlan is how the kernel serves services, and what load balancers hear of their
// health.
type servicePlan struct {
	plan   hostplan.Plan
	checks []serviceport.Check
}

// serving is the outcome of applying a servicePlan.
type serving struct {
	known  bool // what services there are, and with that the checks
	checks []serviceport.Check
	err    error // why it is not as it should be
}

// serve brings the kernel's part of services to what it should be, for a node with
// these addresses. Before the node's subnets are known it does nothing. It is apart
// from the rooms, because services need no link and are kept without Open vSwitch.
func (a *Agent) serve(ctx context.Context, addrs []netip.Addr) serving {
	entries, err := a.serviceEntries(a.memory.subnets, addrs)
	if err != nil || len(a.memory.subnets) == 0 {
		return serving{err == nil, entries.checks, errors.Join(err, a.exempt(ctx))}
	}
	forgetErr := a.kernel.ForgetFlows()
	items, err := item.Supplement(ctx, a.kernel, entries.plan.Host)
	for _, c := range items {
		a.changed(c.Kind(), c.String())
	}
	return serving{true, entries.checks, errors.Join(err, forgetErr)}
}

// exempt keeps what this node uses out of the reach of the entries that are there, whatever these say, while it is not
// known what they should be. So the agent can always hear of that.
func (a *Agent) exempt(ctx context.Context) error {
	have, err := a.kernel.Read([]hostplan.Item{hostplan.ServicePorts{}})
	if err != nil {
		return err
	}
	items, err := item.Supplement(ctx, a.kernel, serviceport.Present(have, a.memory.uses.to).Host)
	for _, c := range items {
		a.changed(c.Kind(), c.String())
	}
	return err
}

// answerHealth updates what load balancers hear of services' health. others tells
// whether the rest of the path to the endpoints is in place.
func (a *Agent) answerHealth(s serving, others bool) {
	switch {
	case s.known:
		a.health.set(s.checks, others && s.err == nil && len(a.memory.subnets) > 0)
	case !others:
		a.health.doubt()
	}
}

// serviceMemory is the last servicePlan, and what it was made from: versions of
// services, endpoints and other nodes' addresses, and addresses of this cluster and
// node.
type serviceMemory struct {
	services, endpoints, peers uint64
	ranges, own                []netip.Prefix
	addrs                      []netip.Addr
	uses                       []netip.AddrPort
	held                       map[netip.Addr]cluster.Holder
	remote                     []string // the nodes whose addresses matter
	settled                    bool     // all of them have been asked for since the agent started
	plan                       servicePlan
	told                       map[serviceport.Note]bool
}

// same tells whether m's plan is the plan for now, which has none yet.
func (m serviceMemory) same(now serviceMemory) bool {
	return m.services == now.services && m.endpoints == now.endpoints && m.peers == now.peers &&
		m.settled == now.settled && slices.Equal(m.uses, now.uses) && maps.Equal(m.held, now.held) &&
		slices.Equal(m.ranges, now.ranges) && slices.Equal(m.own, now.own) && slices.Equal(m.addrs, now.addrs)
}

// serviceEntries is the plan of services, for a node whose pods are in own, and whose
// addresses are addrs. While the services are not known, or endpoints that one needs,
// existing entries stay. Entries to other nodes also stay until a starting agent has
// read these nodes' addresses.
func (a *Agent) serviceEntries(own []netip.Prefix, addrs []netip.Addr) (servicePlan, error) {
	services, version, ok := a.kube.Services()
	if !ok {
		return servicePlan{}, errors.New("the API server has not listed the services yet: " +
			"may this agent list and watch them?")
	}
	now := serviceMemory{services: version, own: own, addrs: addrs, uses: a.memory.uses.to}
	if now.held, ok = a.held(services); !ok {
		return servicePlan{}, errors.New("the API server has not listed its own addresses yet")
	}
	facts := serviceport.Facts{Own: own, Addrs: addrs, Held: now.held, Uses: now.uses}
	var unknown error
	if slices.ContainsFunc(services, serviceport.NeedsEndpoints) {
		var err error
		facts.Endpoints, now.endpoints, err = a.kube.Endpoints()
		facts.Exits = a.kube.Exits()
		switch {
		case errors.Is(err, local.ErrNotAllowed): // that is no reason to keep the others from being served
			unknown = err
		case err != nil:
			return servicePlan{}, fmt.Errorf("for services of externalTrafficPolicy Local: %w", err)
		}
	}
	c, ok := a.ranged()
	if !ok {
		return servicePlan{}, errors.New("the API server has not listed the ServiceCIDRs yet")
	}
	now.ranges = c.ServiceCIDRs
	m := &a.memory.services
	if now.remote = m.remote; m.services != now.services || m.endpoints != now.endpoints {
		now.remote = serviceport.RemoteNodes(services, facts, c)
	}
	peers := a.kube.Peers(now.remote)
	if now.peers, now.settled = peers.Version, m.settled || peers.Read && unknown == nil; !now.settled {
		peers.Addrs = nil
	}
	if m.same(now) && unknown == nil {
		return m.plan, nil
	}
	facts.Nodes = peers.Addrs
	plan, notes := serviceport.Plan(services, facts, c)
	if unknown != nil {
		notes = append(notes, withoutEndpoints(services, unknown)...)
	}
	plan, err := a.retained(plan, unknown != nil, now.settled)
	if err != nil {
		return servicePlan{}, err
	}
	now.plan, now.told = servicePlan{plan, serviceport.Checks(services, facts, c)}, a.tell(notes)
	*m = now
	return m.plan, nil
}

// held is the addresses that no service may have as external ones, as far as this node knows them. ok is false while
// the API server's own are not known, which are asked for once a service has an external address.
func (a *Agent) held(services []*cluster.Service) (held map[netip.Addr]cluster.Holder, ok bool) {
	held = a.memory.uses.held
	if !slices.ContainsFunc(services, func(s *cluster.Service) bool { return len(s.ExternalIPs)+len(s.Ingress) > 0 }) {
		return held, true
	}
	addrs, ok := a.kube.APIServers()
	held = make(map[netip.Addr]cluster.Holder, len(held)+len(addrs))
	maps.Copy(held, a.memory.uses.held)
	for _, addr := range addrs {
		held[addr] = cluster.Holder{As: cluster.HolderAPI}
	}
	return held, ok
}

// retained is a plan with the present entries to endpoints, while these are not known;
// or with the present entries to other nodes, while their addresses are not settled.
func (a *Agent) retained(plan hostplan.Plan, unknown, settled bool) (hostplan.Plan, error) {
	kinds := hostplan.ServiceEntryKind.Remote
	switch {
	case unknown:
		kinds = hostplan.ServiceEntryKind.OfEndpoints
	case settled:
		return plan, nil
	}
	have, err := a.kernel.Read(plan.Host)
	if err != nil {
		return plan, err
	}
	return serviceport.Retain(plan, have, kinds), nil
}

// withoutEndpoints are the notes on services whose endpoints can't be known.
func withoutEndpoints(services []*cluster.Service, why error) (out []serviceport.Note) {
	for _, s := range services {
		if serviceport.NeedsEndpoints(s) {
			out = append(out, serviceport.Note{Service: s.Name, Message: "externalTrafficPolicy Local: " +
				"existing rules stay; otherwise traffic from outside is dropped: " + why.Error()})
		}
	}
	return out
}

// tell logs the notes that were not logged before.
func (a *Agent) tell(notes []serviceport.Note) map[serviceport.Note]bool {
	told := map[serviceport.Note]bool{}
	for _, n := range notes {
		told[n] = true
		if !a.memory.services.told[n] {
			a.log.Warn("service is not served as it asks", "service", n.Service, "reason", n.Message)
		}
	}
	return told
}

// ranged is the agent's configuration with the ranges of ClusterIPs from its flags and
// from the API. ok is false while those of the API are not known.
func (a *Agent) ranged() (c config.Node, ok bool) {
	c = a.config
	more, ok := a.kube.ServiceRanges()
	c.ServiceCIDRs = ipnet.Union(c.ServiceCIDRs, more)
	return c, ok
}

// rangedPlan asks every room, with all ranges of ClusterIPs that are known.
func (a *Agent) rangedPlan(f hostplan.Facts, g config.Gateway) (hostplan.Plan, error) {
	c, complete := a.ranged()
	c.Gateway = g
	plan, failed := all.Plan(f, c)
	err := errors.Join(failed...)
	if err == nil && !complete {
		plan.Host, err = a.withRoutes(plan.Host)
	}
	return plan, err
}

// withRoutes is want and those of our routes that are there: while not all
// ranges of ClusterIPs are known, none of them is removed.
func (a *Agent) withRoutes(want []hostplan.Item) ([]hostplan.Item, error) {
	have, err := a.kernel.Read(want)
	if err != nil {
		return nil, err
	}
	for _, i := range have {
		r, is := i.(hostplan.Route)
		wanted := func(w hostplan.Item) bool { return w.Key() == i.Key() }
		if is && r.Protocol == hostplan.RouteProtocol && !slices.ContainsFunc(want, wanted) {
			want = append(want, r)
		}
	}
	return want, nil
}
