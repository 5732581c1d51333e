package index

import (
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
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
	// guesses is true while a namespace whose Namespace is not known counts as one of these.
	guesses bool
	known   bool // the Namespace that is about to change is known
}

// primary is what a State says of a namespace.
type primary struct {
	locked bool
	in     string
	served bool // the network is there, and not refused
	why    string
}

func newPrimaries() *Primaries { return &Primaries{of: map[string]primary{}} }

// PrimariesOf is the index of a State.
func PrimariesOf(s *cluster.State) *Primaries { return of(s, newPrimaries) }

// Any is true when there is such a namespace, or may be.
func (x *Primaries) Any() bool { return len(x.of) > 0 || x.guesses }

// Namespaces lists these namespaces, sorted.
func (x *Primaries) Namespaces() []string { return slices.Sorted(maps.Keys(x.of)) }

// In lists the namespaces whose primary network is a certain one, in no order.
func (x *Primaries) In(n names.Network) (out []string) {
	for namespace, p := range x.of {
		if p.in == string(n) {
			out = append(out, namespace)
		}
	}
	return out
}

// Kinds implements cluster.Index.
func (*Primaries) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindNamespace, cluster.KindNetworkDefinition, cluster.KindUserNetwork,
		cluster.KindClusterUserNetwork}
}

// Before implements cluster.Index.
func (x *Primaries) Before(s *cluster.State, r cluster.Ref) {
	if r.Kind == cluster.KindNamespace {
		x.known = s.Namespaces[r.Name.Name] != nil
	}
}

// After implements cluster.Index. Pods whose Namespace is not known are in no network, and locked while a
// ClusterUserDefinedNetwork might select it.
func (x *Primaries) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	any, namespaces := x.Any(), map[string]bool{}
	for _, namespace := range s.NamespacesOf(r) {
		namespaces[namespace] = false
	}
	switch r.Kind {
	case cluster.KindNamespace:
		namespaces[r.Name.Name] = x.guesses && x.known != (s.Namespaces[r.Name.Name] != nil)
	case cluster.KindClusterUserNetwork:
		if guesses := s.GuessesPrimary(); x.guesses != guesses {
			x.guesses = guesses
			for pod := range s.Pods {
				namespaces[pod.Namespace] = s.Namespaces[pod.Namespace] == nil
			}
			for svc := range s.Services {
				namespaces[svc.Namespace] = s.Namespaces[svc.Namespace] == nil
			}
		}
	}
	var out []cluster.Topic
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		if x.bring(s, namespace) || namespaces[namespace] {
			out = append(out, topics(PrimaryOf, cluster.Name{Name: namespace})...)
		}
	}
	if any != x.Any() {
		out = append(out, cluster.Topic{Subject: PrimariesUsed})
	}
	return out
}

// bring brings up to date what is known of a namespace. It is true if that is something else now. Nothing is kept of
// one that is only guessed to have a primary network: nobody would say when to forget it.
func (x *Primaries) bring(s *cluster.State, namespace string) bool {
	var now primary
	if s.Namespaces[namespace] != nil || s.PrimaryClaimed(namespace) {
		n, why := s.Primary(namespace)
		now = primary{s.Locked(cluster.Name{Namespace: namespace}), string(n), s.Networks[n] != nil, why}
	}
	if x.of[namespace] == now {
		return false
	}
	if delete(x.of, namespace); now.locked {
		x.of[namespace] = now
	}
	return true
}
