package index

import "github.com/northbound-net/northbound/go-controller/internal/cluster"

// Subjects of topics about multicast.
const (
	// MulticastUsed is about the first namespace that may use multicast, and the last that may not any more; it has no
	// key.
	MulticastUsed cluster.Subject = "any multicast"
	// MulticastOf is about whether the pods of a namespace may use multicast, and of which namespace of that name; the
	// key's name is the namespace.
	MulticastOf cluster.Subject = "multicast of a namespace"
)

// Multicast answers which namespaces' pods may use multicast.
type Multicast struct {
	in map[string]string // the UIDs of these namespaces
}

func newMulticast() *Multicast { return &Multicast{map[string]string{}} }

// MulticastIn is the index of a State.
func MulticastIn(s *cluster.State) *Multicast { return of(s, newMulticast) }

// Any is true when the pods of any namespace may use multicast.
func (x *Multicast) Any() bool { return len(x.in) > 0 }

// Kinds implements cluster.Index.
func (*Multicast) Kinds() []cluster.Kind { return []cluster.Kind{cluster.KindNamespace} }

// Before implements cluster.Index.
func (*Multicast) Before(*cluster.State, cluster.Ref) {}

// After implements cluster.Index.
func (x *Multicast) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	n, any := s.Namespaces[r.Name.Name], x.Any()
	uid, has := x.in[r.Name.Name]
	now := n != nil && n.Multicast
	if now == has && (!now || uid == n.UID) {
		return nil
	}
	if delete(x.in, r.Name.Name); now {
		x.in[r.Name.Name] = n.UID
	}
	out := topics(MulticastOf, r.Name)
	if any != x.Any() {
		out = append(out, cluster.Topic{Subject: MulticastUsed})
	}
	return out
}
