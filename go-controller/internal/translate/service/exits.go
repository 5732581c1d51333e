package service

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// The scopes of a service of a primary network that everybody reaches.
const (
	byExits = "by-exits" // in the cluster's own network: its VIPs lead to the network's exits, at the node ports
	atExits = "at-exits" // the exits: from there they lead to the pods
)

// byExits is the load balancers by which others than the pods of a primary network reach the service. In the cluster's
// own network an exit is as one pod. A client's connection has the exit's address on the join switch as its source in
// the network, so that answers come back to this exit.
func (r serviceRows) byExits(eps []*cluster.EndpointSlice) (rows []nb.Row) {
	own := r.state.Networks[names.Own]
	exits := r.state.ExitSlices(r.network, r.svc, eps)
	for _, proto := range cluster.Protocols() {
		if vips := vipsFor(r.choices(proto, exits), "", ""); len(vips) > 0 {
			rows = append(rows, r.unchecked(proto, placement{byExits, vips,
				[]nb.Slot{inGroup(own.LBGroupRow(nbdb.LoadBalancerGroupTable))}}))
		}
		if vips := vipsAtExits(proto, r.svc, exits, eps); len(vips) > 0 {
			rows = append(rows, r.unchecked(proto, placement{atExits, vips,
				[]nb.Slot{inGroup(r.network.ExitsLBGroupRow(nbdb.LoadBalancerGroupTable))}}))
		}
	}
	return rows
}

// vipsAtExits maps the node ports at the addresses of exits to the pods of a service. All exits have the VIPs of all:
// nobody else's come to an exit.
func vipsAtExits(p cluster.Protocol, svc *cluster.Service, exits, eps []*cluster.EndpointSlice) map[string]string {
	out := map[string]string{}
	for _, port := range svc.Ports {
		if port.Protocol != p {
			continue
		}
		for _, is4 := range []bool{true, false} {
			backends := joined(cluster.Choose(port, is4, eps).Backends, ",")
			for _, vip := range cluster.Choose(port, is4, exits).Backends {
				out[vip.String()] = backends
			}
		}
	}
	return out
}

// unchecked is a load balancer without health checks.
func (r serviceRows) unchecked(proto cluster.Protocol, p placement) nb.Row {
	role, lb := r.balancer(proto, p)
	return r.Row(role, lb, p.slots...)
}

// ofExits lists the services of a primary network that lead to its exits, if a change gave a node an exit, or took one.
func ofExits(s *cluster.State, c cluster.Change) (out []cluster.Name) {
	if c.Ref.Kind != cluster.KindNode || !c.Granted || !c.Network.Further() {
		return nil
	}
	for _, namespace := range index.PrimariesOf(s).In(c.Network) {
		for _, svc := range s.ServicesIn(namespace) {
			if s.Services[svc].ByExits(s.Config.Services) {
				out = append(out, svc)
			}
		}
	}
	return out
}
