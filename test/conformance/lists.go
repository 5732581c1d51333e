package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox"
)

// separator separates the subject of a line from the reason.
const separator = " -- "

// Exclusion excludes the specs that Pattern matches.
type Exclusion struct {
	Pattern *regexp.Regexp
	Reason  string
}

// Failure is the reason for a known failure.
type Failure struct {
	Chart  bool            // only on a cluster of the Helm chart
	Before sandbox.Release // only with an OVN older than that; nil: with every OVN
	Reason string
}

// Lists are the decisions about specs, with their reasons.
type Lists struct {
	Exclude []Exclusion
	Failing map[string]Failure // by spec
}

// ReadLists reads the file of exclusions, with lines "REGEXP -- reason". It also reads the file of known failures, with
// lines "SPEC -- reason" or "SPEC -- before OVN RELEASE -- reason". Empty lines and lines that begin with # are
// ignored.
func ReadLists(exclude, failing string) (Lists, error) {
	l := Lists{Failing: map[string]Failure{}}
	err := errors.Join(
		eachLine(exclude, func(what, reason string) error {
			re, err := regexp.Compile(what)
			l.Exclude = append(l.Exclude, Exclusion{re, reason})
			return err
		}),
		eachLine(failing, func(what, reason string) error {
			if _, twice := l.Failing[what]; twice {
				return fmt.Errorf("spec %q is listed twice", what)
			}
			f, err := failure(reason)
			l.Failing[what] = f
			return err
		}))
	return l, err
}

// before is the beginning of the part of a line with the OVN release, and withChart says that a spec fails only on a
// cluster of the Helm chart.
const (
	before    = "before OVN "
	withChart = "with the chart"
)

func failure(text string) (f Failure, err error) {
	when, reason, ok := strings.Cut(text, separator)
	if !ok {
		return Failure{Reason: text}, nil
	}
	if when == withChart {
		return Failure{Reason: reason, Chart: true}, nil
	}
	release, ok := strings.CutPrefix(when, before)
	if !ok {
		return f, fmt.Errorf("%q: want `SPEC%sREASON`, `SPEC%s%sRELEASE%sREASON` or `SPEC%s%s%sREASON`", when,
			separator, separator, before, separator, separator, withChart, separator)
	}
	f.Reason = reason
	f.Before, err = sandbox.ParseRelease(release)
	return f, err
}

// Known divides the known failures into those with this OVN and those with older ones only. Both map specs to reasons.
func (l Lists) Known(ovn sandbox.Release, chart bool) (now, older map[string]string) {
	now, older = map[string]string{}, map[string]string{}
	for spec, f := range l.Failing {
		switch {
		case f.Chart && !chart:
		case f.Chart:
			now[spec] = f.Reason
		case f.Before == nil:
			now[spec] = f.Reason
		case ovn.Before(f.Before):
			now[spec] = before + f.Before.String() + ": " + f.Reason
		default:
			older[spec] = before + f.Before.String() + ": " + f.Reason
		}
	}
	return now, older
}

func eachLine(file string, do func(what, reason string) error) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading a list of specs: %w", err)
	}
	number := 0
	for line := range strings.Lines(string(b)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, reason, ok := strings.Cut(line, separator)
		if !ok || what == "" || reason == "" {
			return fmt.Errorf("reading %s, line %d: %q: want `WHAT%sREASON`", file, number, line, separator)
		}
		if err := do(what, reason); err != nil {
			return fmt.Errorf("reading %s, line %d: %w", file, number, err)
		}
	}
	return nil
}

// Selection says which specs run.
type Selection struct {
	Run      []string            // in order
	Excluded map[string][]string // reason -> specs, in order
}

// Select divides the specs. It is an error if a line of the lists matches no spec: the line is out of date.
func (l Lists) Select(specs []string) (Selection, error) {
	s := Selection{Excluded: map[string][]string{}}
	used := make([]bool, len(l.Exclude))
	specs = slices.SortedFunc(slices.Values(specs), mandatoryFirst)
	for _, name := range specs {
		at := slices.IndexFunc(l.Exclude, func(e Exclusion) bool { return e.Pattern.MatchString(name) })
		if at < 0 {
			s.Run = append(s.Run, name)
			continue
		}
		used[at] = true
		s.Excluded[l.Exclude[at].Reason] = append(s.Excluded[l.Exclude[at].Reason], name)
	}
	var errs []error
	for i, e := range l.Exclude {
		if !used[i] {
			errs = append(errs, fmt.Errorf("exclusion %q: it is the first to match of no spec: remove it", e.Pattern))
		}
	}
	for name := range l.Failing {
		if !slices.Contains(s.Run, name) {
			errs = append(errs, fmt.Errorf("known failure %q: no such spec is run: remove it", name))
		}
	}
	return s, errors.Join(errs...)
}

// mandatoryFirst sorts specs by name: those that every conformant cluster must pass come first, those that run alone
// last.
func mandatoryFirst(a, b string) int {
	rank := func(name string) int {
		switch {
		case isConformance(name):
			return 0
		case strings.Contains(name, "[Serial]"):
			return 2
		default:
			return 1
		}
	}
	return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
}

func isConformance(name string) bool { return strings.Contains(name, "[Conformance]") }
