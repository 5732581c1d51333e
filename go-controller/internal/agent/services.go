package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
)

// ways is how services are reached from outside, and what who asks for their
// health is told.
type ways struct {
	plan   hostplan.Plan
	checks []serviceport.Check
}

// serving is what came of keeping the way in to services.
type serving struct {
	known  bool // what services there are, and with that the checks
	checks []serviceport.Check
	err    error // why it is not as it should be
}

// serve makes the kernel's part of services as it should be, for a node with
// these addresses of its own; before its subnets are known, nothing. Services are
// reached by links that need not be there yet, so it is apart from the rooms.
func (a *Agent) serve(ctx context.Context, addrs []netip.Addr) serving {
	ways, err := a.waysIn(a.memory.subnets, addrs)
	if err != nil || len(a.memory.subnets) == 0 {
		return serving{err == nil, ways.checks, err}
	}
	forgetErr := a.kernel.ForgetFlows()
	items, err := hostnet.Supplement(ctx, a.kernel, ways.plan.Host)
	for _, c := range items {
		a.changed(c.Kind(), c.String())
	}
	return serving{true, ways.checks, errors.Join(err, forgetErr)}
}

// answerHealth has who asks for services' health told; others tells whether all
// else that leads to their endpoints is in place.
func (a *Agent) answerHealth(s serving, others bool) {
	switch {
	case s.known:
		a.health.set(s.checks, others && s.err == nil && len(a.memory.subnets) > 0)
	case !others:
		a.health.doubt()
	}
}

// serviceMemory is the last ways in to services, and what they were made of:
// which versions of services, endpoints and other nodes' addresses, and which
// addresses of this cluster and node.
type serviceMemory struct {
	services, endpoints, peers uint64
	ranges, own                []netip.Prefix
	addrs                      []netip.Addr
	away                       []string // the nodes whose addresses matter
	settled                    bool     // the addresses of all of them were asked for, at least once since the agent began
	ways                       ways
	told                       map[serviceport.Note]bool
}

// same tells whether the ways of m are those of now, which has none yet.
func (m serviceMemory) same(now serviceMemory) bool {
	return m.services == now.services && m.endpoints == now.endpoints && m.peers == now.peers && m.settled == now.settled &&
		slices.Equal(m.ranges, now.ranges) && slices.Equal(m.own, now.own) && slices.Equal(m.addrs, now.addrs)
}

// waysIn is the way in to services, for a node whose pods are in own, and whose
// addresses are addrs. As long as the services are not known, or the endpoints if
// one needs them, what there is stays; and so does what leads to other nodes, of an
// agent that begins and has not yet read what their addresses are.
func (a *Agent) waysIn(own []netip.Prefix, addrs []netip.Addr) (ways, error) {
	services, version, ok := a.kube.Services()
	if !ok {
		return ways{}, errors.New("the API server has not listed the services yet: may this agent list and watch them?")
	}
	now := serviceMemory{services: version, own: own, addrs: addrs}
	var endpoints serviceport.Slices
	var unknown error
	if slices.ContainsFunc(services, serviceport.NeedsEndpoints) {
		var err error
		endpoints, now.endpoints, err = a.kube.Endpoints()
		switch {
		case errors.Is(err, local.ErrNotAllowed): // that is no reason to keep the others from being served
			unknown = err
		case err != nil:
			return ways{}, fmt.Errorf("for services of externalTrafficPolicy Local: %w", err)
		}
	}
	c, ok := a.ranged()
	if !ok {
		return ways{}, errors.New("the API server has not listed the ServiceCIDRs yet")
	}
	now.ranges = c.ServiceCIDRs
	m := &a.memory.services
	if now.away = m.away; m.services != now.services || m.endpoints != now.endpoints {
		now.away = serviceport.Away(services, endpoints, c.Name)
	}
	peers := a.kube.Peers(now.away)
	if now.peers, now.settled = peers.Version, m.settled || peers.Read && unknown == nil; !now.settled {
		peers.Addrs = nil
	}
	if m.same(now) && unknown == nil {
		return m.ways, nil
	}
	plan, notes := serviceport.Plan(services, serviceport.Facts{Endpoints: endpoints, Own: own, Addrs: addrs, Nodes: peers.Addrs}, c)
	if unknown != nil {
		notes = append(notes, withoutEndpoints(services, unknown)...)
	}
	plan, err := a.kept(plan, unknown != nil, now.settled)
	if err != nil {
		return ways{}, err
	}
	now.ways, now.told = ways{plan, serviceport.Checks(services, a.config.Name, endpoints)}, a.tell(notes)
	*m = now
	return m.ways, nil
}

// kept is a plan with what leads to endpoints as it is, while they are not
// known; or while the others' addresses are not settled, with what leads to these.
func (a *Agent) kept(plan hostplan.Plan, unknown, settled bool) (hostplan.Plan, error) {
	kinds := hostplan.ServiceEntryKind.Away
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
	return serviceport.Keep(plan, have, kinds), nil
}

// withoutEndpoints are the notes on services whose endpoints can't be known.
func withoutEndpoints(services []*cluster.Service, why error) (out []serviceport.Note) {
	for _, s := range services {
		if serviceport.NeedsEndpoints(s) {
			out = append(out, serviceport.Note{Service: s.Name, Message: "externalTrafficPolicy Local: connections from outside of the cluster are led where they were before, or dropped: " + why.Error()})
		}
	}
	return out
}

// tell logs the notes that were not told before.
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

// ranged is the agent's configuration with the ranges of ClusterIPs that were
// given to it, and those that the API has now; ok is false while these are not
// known.
func (a *Agent) ranged() (c config.Node, ok bool) {
	c = a.config
	more, ok := a.kube.ServiceRanges()
	c.ServiceCIDRs = ipnet.Union(c.ServiceCIDRs, more)
	return c, ok
}

// rangedPlan asks every room, with all ranges of ClusterIPs that are known.
func (a *Agent) rangedPlan(f hostplan.Facts) (hostplan.Plan, error) {
	c, all := a.ranged()
	plan, err := planOf(f, c)
	if err == nil && !all {
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
		if is && r.Protocol == hostplan.RouteProtocol && !slices.ContainsFunc(want, func(w hostplan.Item) bool {
			other, is := w.(hostplan.Route)
			return is && other.Dest == r.Dest
		}) {
			want = append(want, r)
		}
	}
	return want, nil
}
