package nb

import "slices"

// Settled is the plans of one transaction without the deletes of rows that another of them keeps, and the owners that
// have nothing left to do. Such a row bears the mark of an owner that does not want it, because somebody wrote that
// into it; the owner that does want it puts its own mark back, and what lists the row is for that owner to say.
func Settled(plans []Plan) (kept []Plan, done []Owner) {
	written := map[Ref]bool{}
	for _, p := range plans {
		for _, r := range p.Rows {
			if r.Verb != Delete {
				written[Ref{r.Key.Table, r.UUID}] = true
			}
		}
	}
	for _, p := range plans {
		disputed := map[Ref]bool{}
		for _, r := range p.Rows {
			if ref := (Ref{r.Key.Table, r.UUID}); r.Verb == Delete && written[ref] {
				disputed[ref] = true
			}
		}
		if len(disputed) > 0 {
			p.Rows = slices.DeleteFunc(slices.Clone(p.Rows), func(r RowChange) bool { return disputed[Ref{r.Key.Table, r.UUID}] })
			p.Members = slices.DeleteFunc(slices.Clone(p.Members), func(m Membership) bool { return disputed[Ref{m.Key.Table, m.UUID}] })
		}
		if p.Empty() {
			done = append(done, p.Owner)
		} else {
			kept = append(kept, p)
		}
	}
	return kept, done
}
