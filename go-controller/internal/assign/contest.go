package assign

import "github.com/northbound-net/northbound/go-controller/internal/cluster"

// loss is what an object claims and another has.
type loss struct{ uid, reason, text string } // of the object, and of the Problem; no text when it has all

// contest tells the owner of an object that changed, and those of its rivals,
// what they do not have. Each is told once, until that changes.
func (a *assignment) contest(c cluster.Change, lost func(cluster.Object) loss) {
	for _, name := range append([]cluster.Name{c.Ref.Name}, c.Rivals...) {
		ref := cluster.Ref{Kind: c.Ref.Kind, Name: name}
		o, now := a.s.Object(ref), loss{}
		if o != nil {
			now = lost(o)
		}
		told := now.uid + now.text
		switch {
		case now.text == "":
			delete(a.contested, ref)
		case a.contested[ref] != told:
			a.contested[ref] = told
			a.problem(o, now.uid, now.reason, now.text)
		}
	}
}
