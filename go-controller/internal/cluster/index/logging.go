package index

import "github.com/northbound-net/northbound/go-controller/internal/cluster"

// Subjects of topics about logging.
const (
	// LoggingUsed is about the first object that asks for packets to be logged, and the end of the last; it has no key.
	LoggingUsed cluster.Subject = "any logging"
	// LoggingOf is about what the NetworkPolicies of a namespace log; the key's name is the namespace.
	LoggingOf cluster.Subject = "logging of a namespace"
)

// Logging answers what is logged of what policies decide.
type Logging struct {
	by map[cluster.Ref]cluster.Logging // the objects that log anything
}

func newLogging() *Logging { return &Logging{map[cluster.Ref]cluster.Logging{}} }

// LoggingIn is the index of a State.
func LoggingIn(s *cluster.State) *Logging { return of(s, newLogging) }

// Any is true when anything is logged.
func (x *Logging) Any() bool { return len(x.by) > 0 }

// Kinds implements cluster.Index.
func (*Logging) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindNamespace, cluster.KindClusterNetworkPolicy}
}

// Before implements cluster.Index.
func (*Logging) Before(*cluster.State, cluster.Ref) {}

// After implements cluster.Index.
func (x *Logging) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	var now cluster.Logging
	switch r.Kind {
	case cluster.KindNamespace:
		if n := s.Namespaces[r.Name.Name]; n != nil {
			now = n.Logging
		}
	case cluster.KindClusterNetworkPolicy:
		if p := s.ClusterNetworkPolicies[r.Name.Name]; p != nil {
			now = p.Logging
		}
	}
	any := x.Any()
	if x.by[r] == now {
		return nil
	}
	if x.by[r] = now; !now.Any() {
		delete(x.by, r)
	}
	var out []cluster.Topic
	if r.Kind == cluster.KindNamespace {
		out = topics(LoggingOf, r.Name)
	}
	if any != x.Any() {
		out = append(out, cluster.Topic{Subject: LoggingUsed})
	}
	return out
}
