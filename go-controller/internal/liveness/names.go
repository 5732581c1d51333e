package liveness

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/nbrecord"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/resolve"
)

// Resolver finds the addresses of names in DNS.
type Resolver interface {
	// Signal delivers a value when Take has something. Values merge.
	Signal() <-chan struct{}
	// Follow says which names to ask for.
	Follow(names []string)
	// Presume takes addresses as known that were found earlier.
	Presume(known map[string][]netip.Addr)
	// Take returns the names of which something else is known, and those that are no longer followed.
	Take() (changed map[string]resolve.Known, gone []string)
}

// Names reports the addresses of the names in DNS that policies have.
type Names struct {
	resolver Resolver
	recalled bool // Recall was called
}

// NewNames is a monitor of no name yet.
func NewNames(r Resolver) *Names { return &Names{resolver: r} }

// Signal delivers a value when Take has something. Values merge.
func (n *Names) Signal() <-chan struct{} { return n.resolver.Signal() }

// Take returns the names whose addresses changed since the last call.
func (n *Names) Take() []cluster.Event {
	changed, gone := n.resolver.Take()
	var events []cluster.Event
	for name, k := range changed {
		d := cluster.NewDomainName(name, k.Addrs, k.Trouble)
		d.Pending = k.Pending
		events = append(events, cluster.Event{Ref: d.Ref(), New: d})
	}
	for _, name := range gone {
		events = append(events, cluster.Event{Ref: cluster.DomainNameRef(name)})
	}
	return events
}

// Recall takes the addresses in the database as known: those that the last master found. They are accepted until DNS
// has answered, and for a while after that. So a new master cuts no connection, and writes nothing that it need not.
// Recall acts only on its first call, before the first full pass.
func (n *Names) Recall(s *cluster.State, session *ovsdb.Session) []cluster.Event {
	if n.recalled {
		return nil
	}
	n.recalled = true
	names := index.DomainNamesOf(s).List()
	n.resolver.Follow(names)
	n.resolver.Presume(nbrecord.DomainNames(session.View(), names))
	return n.Take()
}

// Changed follows the names that policies have now.
func (n *Names) Changed(s *cluster.State, changes []cluster.Change) []cluster.Problem {
	for _, c := range changes {
		if c.Ref.Kind == cluster.KindClusterNetworkPolicy {
			n.resolver.Follow(index.DomainNamesOf(s).List())
			break
		}
	}
	return nil
}
