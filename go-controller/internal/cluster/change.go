package cluster

import (
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Event is an object as a source reports it now. New is nil when the object is gone. Between is true when the source
// reported something else since the last Event: somebody may have changed the object and changed it back.
type Event struct {
	Ref     Ref
	New     Object
	Between bool
}

// Change is what an Event or a grant altered. Old is nil for an object that was added, New for one that was deleted.
// When only what was granted to an object in Network changed, both are that object, and Granted is true. Topics list
// which answers of the indexes changed with it.
type Change struct {
	Ref      Ref
	Old, New Object
	Granted  bool
	Network  names.Network
	Topics   []Topic
}

// Subject is a question that an Index answers.
type Subject string

// Topic is an answer of an Index that changed: the answer to Subject for Key.
type Topic struct {
	Subject Subject
	Key     Name
}

// About lists the keys of the topics of one subject.
func (c Change) About(s Subject) []Name {
	var out []Name
	for _, t := range c.Topics {
		if t.Subject == s {
			out = append(out, t.Key)
		}
	}
	return out
}

// Concerns is true when the change has a topic of the subject.
func (c Change) Concerns(s Subject) bool {
	return slices.ContainsFunc(c.Topics, func(t Topic) bool { return t.Subject == s })
}

// Index answers one question about the cluster, such as which zones have nodes, without a look at every object. A State
// keeps it up to date: it calls Before and After around each change of an object of Kinds, and of what was granted to
// such an object.
type Index interface {
	// Kinds lists the kinds that the answer depends on.
	Kinds() []Kind
	// Before removes what the object contributes. The State does not have the change yet.
	Before(s *State, r Ref)
	// After adds what the object contributes now, and lists the answers that changed.
	After(s *State, r Ref) []Topic
}
