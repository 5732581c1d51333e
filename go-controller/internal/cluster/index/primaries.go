package index

import (
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Subjects of topics about primary networks.
const (
	// PrimaryOf is about the primary network of a namespace's pods; the key's name is the namespace.
	PrimaryOf cluster.Subject = "primary network of a namespace"
	// PrimariesUsed is about the first namespace whose pods are in a primary network, and the last; it has no key.
	PrimariesUsed cluster.Subject = "any primary network"
)

// Primaries answers which namespaces have pods that are locked in the cluster's own network.
type Primaries struct {
	of map[string]primary
}

// primary is what a State says of a namespace.
type primary struct {
	locked bool
	in     string
	served bool // the network is there, and not refused
	why    string
}

func newPrimaries() *Primaries { return &Primaries{map[string]primary{}} }

// PrimariesOf is the index of a State.
func PrimariesOf(s *cluster.State) *Primaries { return of(s, newPrimaries) }

// Any is true when there is such a namespace.
func (x *Primaries) Any() bool { return len(x.of) > 0 }

// Namespaces lists these namespaces, sorted.
func (x *Primaries) Namespaces() []string { return slices.Sorted(maps.Keys(x.of)) }

// Kinds implements cluster.Index.
func (*Primaries) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindNamespace, cluster.KindNetworkDefinition, cluster.KindUserNetwork}
}

// Before implements cluster.Index.
func (*Primaries) Before(*cluster.State, cluster.Ref) {}

// After implements cluster.Index.
func (x *Primaries) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	namespace := r.Name.Name
	if r.Kind != cluster.KindNamespace {
		namespace = r.Name.Namespace
	}
	n, why := s.Primary(namespace)
	any, before := x.Any(), x.of[namespace]
	now := primary{s.Locked(cluster.Name{Namespace: namespace}), string(n), s.Networks[n] != nil, why}
	if before == now {
		return nil
	}
	if delete(x.of, namespace); now.locked {
		x.of[namespace] = now
	}
	out := topics(PrimaryOf, cluster.Name{Name: namespace})
	if any != x.Any() {
		out = append(out, cluster.Topic{Subject: PrimariesUsed})
	}
	return out
}
