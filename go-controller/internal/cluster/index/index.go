package index

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// All is a new index of each type of this package.
func All() []cluster.Index {
	return []cluster.Index{newZones(), newSwitches(), newGateways(), newVIPs(), newServices(), newHealthChecks(),
		newAddresses(), newTaken(), newChassis(), newPolicies(), newMulticast(), newLogging(),
		newTenants(), newDomainNames(), newPrimaries()}
}

// NewState is an empty cluster with the indexes of this package and others.
func NewState(c config.Cluster, others ...cluster.Index) *cluster.State {
	return cluster.NewState(c, append(All(), others...)...)
}

// of is the State's index of a type. For a State that was made without one it makes the index from all objects: that
// gives the same answers, but is slow.
func of[I cluster.Index](s *cluster.State, empty func() I) I {
	if i, ok := cluster.IndexOf[I](s); ok {
		return i
	}
	i := empty()
	for _, k := range i.Kinds() {
		for o := range s.Objects(k) {
			i.After(s, o.Ref())
		}
	}
	return i
}

// families lists the address families: true is IPv4.
func families() []bool { return []bool{true, false} }

// family is the key of a topic about an address family.
func family(is4 bool) cluster.Name {
	return cluster.Name{Name: string(names.FamilyOf(is4))}
}

// topics is a topic of one subject for each key.
func topics(s cluster.Subject, keys ...cluster.Name) []cluster.Topic {
	out := make([]cluster.Topic, 0, len(keys))
	for _, k := range keys {
		out = append(out, cluster.Topic{Subject: s, Key: k})
	}
	return out
}
