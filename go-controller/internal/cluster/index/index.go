package index

import (
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// All is a new index of each type of this package.
func All() []cluster.Index {
	return []cluster.Index{newZones(), newSwitches(), newGateways(), newVIPs(), newServices(), newHealthChecks(), newAddresses()}
}

// NewState is an empty cluster with the indexes of this package and others.
func NewState(c config.Cluster, others ...cluster.Index) *cluster.State {
	return cluster.NewState(c, append(All(), others...)...)
}

// of is the State's index of a type. A State that was made without one gives
// the same answers, but has to look at every object for each.
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

// set is names, each once.
type set map[cluster.Name]struct{}

// put adds a name, or removes it.
func (m set) put(n cluster.Name, in bool) {
	if in {
		m[n] = struct{}{}
	} else {
		delete(m, n)
	}
}

// sorted lists the names in order.
func (m set) sorted() []cluster.Name {
	return slices.SortedFunc(maps.Keys(m), cluster.CompareNames)
}

// list lists the names in no order.
func (m set) list() []cluster.Name { return slices.Collect(maps.Keys(m)) }

// sets is a set for each key; keys without members are not kept.
type sets[K comparable] map[K]set

func (m sets[K]) put(k K, n cluster.Name, in bool) {
	if in && m[k] == nil {
		m[k] = set{}
	}
	m[k].put(n, in)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}

// nodeName is the name of a cluster-scoped object.
func nodeName(node string) cluster.Name { return cluster.Name{Name: node} }

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
