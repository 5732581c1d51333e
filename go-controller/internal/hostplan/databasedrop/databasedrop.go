package databasedrop

import (
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Plan is the drop. Until the node has subnets there is none: no pod can send anything through the node's kernel.
func Plan(f hostplan.Facts, c config.Node) (hostplan.Plan, error) {
	if len(f.Subnets) == 0 {
		return hostplan.Plan{}, nil
	}
	return hostplan.Plan{Host: []hostplan.Item{hostplan.NewDatabaseDrop(f, c)}}, nil
}
