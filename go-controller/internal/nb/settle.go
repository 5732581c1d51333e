package nb

import "slices"

// Settled resolves conflicts between the plans of one transaction: it drops the deletion of a row that another plan
// keeps. It also returns the owners that have nothing left to do. Such a row carries the mark of an owner that does not
// want it, because somebody wrote that mark by hand. The owner that wants the row restores its own mark, and decides
// which slots list the row.
func Settled(plans []Plan) (kept []Plan, done []Owner) {
	written := map[Ref]bool{}
	for _, p := range plans {
		for _, r := range p.Rows {
			if r.Verb != Delete {
				written[r.Ref()] = true
			}
		}
	}
	for _, p := range plans {
		disputed := map[Ref]bool{}
		for _, r := range p.Rows {
			if r.Verb == Delete && written[r.Ref()] {
				disputed[r.Ref()] = true
			}
		}
		if len(disputed) > 0 {
			p.Rows = slices.DeleteFunc(slices.Clone(p.Rows), func(r RowChange) bool { return disputed[r.Ref()] })
			p.Members = slices.DeleteFunc(slices.Clone(p.Members), func(m Membership) bool { return disputed[m.Ref()] })
		}
		if p.Empty() {
			done = append(done, p.Owner)
		} else {
			kept = append(kept, p)
		}
	}
	return kept, done
}
