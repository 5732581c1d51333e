// Package all lists the rooms of a node's plan: a new feature adds its line here,
// and the agent, the commands that set machines up by hand and the doctor have it.
//
// The room serviceport is not in the list. It plans from the cluster's services,
// which also have to be kept while Open vSwitch is away.
package all

import (
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/antispoof"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/databasedrop"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/egress"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/encap"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/gateway"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/mgmtport"
)

// Room plans a part of what a node should look like.
type Room func(hostplan.Facts, config.Node) (hostplan.Plan, error)

// Rooms is every room, in the order in which their items are applied.
func Rooms() []Room {
	return []Room{
		encap.Plan,
		mgmtport.Plan,
		antispoof.Plan,
		databasedrop.Plan,
		egress.Plan,
		gateway.Plan,
	}
}

// Plan asks every room, and tells why rooms failed. A room that fails contributes
// nothing to the plan: then only additions to Open vSwitch may be applied, as the
// kernel's part would lack items that must not be removed.
func Plan(f hostplan.Facts, c config.Node) (p hostplan.Plan, failed []error) {
	var plans []hostplan.Plan
	for _, room := range Rooms() {
		part, err := room(f, c)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		plans = append(plans, part)
	}
	return hostplan.Merge(plans...), failed
}
