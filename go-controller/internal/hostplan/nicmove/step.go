package nicmove

import "fmt"

// Step is one change. Have is nil if Want is to be created; Want is nil if Have is to be removed. Both have the same
// type: Bridge, Port, Addr, Route, Rule, Neighbour, Offload, hostplan.Link, hostplan.Sysctl or hostplan.IngressDrop.
type Step struct{ Have, Want fmt.Stringer }

// String returns the step as a line that starts with +, - or ~.
func (s Step) String() string {
	switch {
	case s.Have == nil:
		return "+ " + s.Want.String()
	case s.Want == nil:
		return "- " + s.Have.String()
	default:
		return fmt.Sprintf("~ %s (was: %s)", s.Want, s.Have)
	}
}

// Thing returns what the step is about: Want, or Have if that is to be removed.
func (s Step) Thing() fmt.Stringer {
	if s.Want == nil {
		return s.Have
	}
	return s.Want
}

// steps collects a plan.
type steps []Step

func (s *steps) add(want fmt.Stringer)           { *s = append(*s, Step{Want: want}) }
func (s *steps) remove(have fmt.Stringer)        { *s = append(*s, Step{Have: have}) }
func (s *steps) replace(have, want fmt.Stringer) { *s = append(*s, Step{have, want}) }
