package item

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Kernel is the host's network state.
type Kernel interface {
	// Read tells the present state of everything in want, and of everything
	// else that is ours.
	Read(want []hostplan.Item) ([]hostplan.Item, error)
	// Apply makes one change.
	Apply(Change) error
}

// Change is one difference. Have is nil for a missing item, Want for one that must go.
type Change struct{ Have, Want hostplan.Item }

// String is the change as a line that starts with +, - or ~.
func (c Change) String() string {
	if s, ok := c.services(); ok {
		return s
	}
	switch {
	case c.Have == nil:
		return "+ " + c.Want.String()
	case c.Want == nil:
		return "- " + c.Have.String()
	default:
		return fmt.Sprintf("~ %s (was: %s)", c.Want, c.Have)
	}
}

// services is String for changed entries of service ports: it names them.
func (c Change) services() (s string, ok bool) {
	have, ok1 := c.Have.(hostplan.ServicePorts)
	want, ok2 := c.Want.(hostplan.ServicePorts)
	if !ok1 || !ok2 || have.WithoutEntries() != want.WithoutEntries() {
		return "", false
	}
	changes, err := hostplan.ServiceChanges(want, have)
	if err != nil {
		return "", false
	}
	lines := hostplan.ServiceChangeLines(changes)
	if more := len(lines) - changesShown; more > 0 {
		lines = append(lines[:changesShown], fmt.Sprintf("and %d more", more))
	}
	return "service-ports " + strings.Join(lines, ", "), true
}

// changesShown is how many changed entries of service ports a line names.
const changesShown = 3

// Item is what the change is about: Want, or Have if that must go.
func (c Change) Item() hostplan.Item {
	if c.Want == nil {
		return c.Have
	}
	return c.Want
}

// Kind is what the change is about: "link", "addr", "route", "neigh",
// "nftables" or "sysctl".
func (c Change) Kind() string {
	switch c.Item().(type) {
	case hostplan.Link:
		return "link"
	case hostplan.Addr:
		return "addr"
	case hostplan.Route:
		return "route"
	case hostplan.Neighbour:
		return "neigh"
	case hostplan.Masquerade, hostplan.Hairpin, hostplan.AntiSpoof, hostplan.DatabaseDrop, hostplan.IngressDrop,
		hostplan.ServicePorts:
		return "nftables"
	default:
		return "sysctl"
	}
}

// Diff lists what turns have into want: removals first, then the rest in want's order.
// absent names the wanted links that do not exist. Changes of items on these are left
// out.
func Diff(want, have []hostplan.Item) (changes []Change, absent []string) {
	now, wanted := byKey(have), byKey(want)
	for _, h := range have {
		if wanted[h.Key()] == nil {
			changes = append(changes, Change{Have: h})
		}
	}
	for _, w := range want {
		if l, ok := w.(hostplan.Link); ok && now[l.Key()] == nil {
			absent = append(absent, l.Name)
		}
	}
	possible := slices.DeleteFunc(slices.Clone(want), func(w hostplan.Item) bool {
		l, isLink := w.(hostplan.Link)
		return isLink && slices.Contains(absent, l.Name) || slices.Contains(absent, w.Device())
	})
	return append(changes, Missing(possible, have)...), absent
}

func byKey(items []hostplan.Item) map[string]hostplan.Item {
	out := map[string]hostplan.Item{}
	for _, i := range items {
		out[i.Key()] = i
	}
	return out
}

// Missing lists what turns have into want as if every link existed: a preview of what
// Converge does in the end. It removes nothing.
func Missing(want, have []hostplan.Item) []Change {
	now := byKey(have)
	var out []Change
	for _, w := range want {
		if h := now[w.Key()]; h != w {
			out = append(out, Change{Have: h, Want: w})
		}
	}
	return out
}

// Converge reads, compares and applies, and returns what it changed. A change that
// fails does not keep others from being made. The error also names wanted links that do
// not exist.
func Converge(ctx context.Context, k Kernel, want []hostplan.Item) ([]Change, error) {
	have, err := k.Read(want)
	if err != nil {
		return nil, err
	}
	changes, absent := Diff(want, have)
	done, err := applyAll(ctx, k, changes)
	errs := []error{err}
	for _, name := range absent {
		errs = append(errs, &LinkAbsentError{name})
	}
	return done, errors.Join(errs...)
}

// Supplement is Converge for a part of the plan that needs no link. It removes nothing
// else.
func Supplement(ctx context.Context, k Kernel, want []hostplan.Item) ([]Change, error) {
	have, err := k.Read(want)
	if err != nil {
		return nil, err
	}
	return applyAll(ctx, k, Missing(want, have))
}

func applyAll(ctx context.Context, k Kernel, changes []Change) (done []Change, err error) {
	var errs []error
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return done, errors.Join(append(errs, err)...)
		}
		if err := k.Apply(c); err != nil {
			errs = append(errs, fmt.Errorf("applying %q: %w", c.String(), err))
			continue
		}
		done = append(done, c)
	}
	return done, errors.Join(errs...)
}

// LinkAbsentError says that a wanted link does not exist: Open vSwitch has not
// made it.
type LinkAbsentError struct{ Link string }

// Error implements error.
func (e *LinkAbsentError) Error() string {
	return fmt.Sprintf("interface %s does not exist: Open vSwitch has not made it (is ovs-vswitchd running?)", e.Link)
}
