package cluster

// Event says what a source says of an object now. New is nil when the object is
// gone. Between tells that the source said something else since the last Event:
// somebody may have changed the object and changed it back.
type Event struct {
	Ref     Ref
	New     Object
	Between bool
}

// Change is what an Event or a grant altered. Old is nil for an object that
// came, New for one that went. Both are the same object when only what was
// granted to it changed; then Granted is true. Topics say which answers of the
// indexes changed with it.
type Change struct {
	Ref      Ref
	Old, New Object
	Granted  bool
	Topics   []Topic
}

// Subject is a question that an Index answers.
type Subject string

// Topic is one answer of an Index that changed: that to Subject about Key.
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

// Concerns tells whether the change has a topic of the subject.
func (c Change) Concerns(s Subject) bool {
	for _, t := range c.Topics {
		if t.Subject == s {
			return true
		}
	}
	return false
}

// Index answers one question about the cluster, such as which zones have nodes,
// without a look at every object. A State keeps it up to date: it calls Before
// and After around each change of an object of Kinds and of what was granted to
// such an object.
type Index interface {
	// Kinds lists the kinds that the answer depends on.
	Kinds() []Kind
	// Before takes out what the object contributes; s does not have the change yet.
	Before(s *State, r Ref)
	// After puts in what the object contributes now, and lists what that changed.
	After(s *State, r Ref) []Topic
}
