package attacks

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// Every frame of a kind is sent so often, in bursts that the node's switch can take in.
const (
	bursts   = 5
	perBurst = 10
)

// spoofer is a pod that pretends to be others, and whoever could be deceived.
type spoofer struct {
	bed
	place
	fd     int
	honest []kind
	at     []*arrivals // the pod on its node, the one on another, both nodes, outside
	pods   []machines.Namespace
}

// spoofing has a pod send packets of many kinds that pretend to be others'. None may arrive anywhere. Honest packets
// between them must: then those before them had their time.
func (b bed) spoofing(t *testing.T) {
	s := b.spoofer(t)
	kinds := spoofs(s.place)
	for i, k := range kinds {
		for range bursts {
			for range perBurst {
				s.send(t, k.frames)
			}
			s.fence(t, s.honest[:1], s.at[:1], fmt.Sprintf("after %s (kind %d)", k.what, i))
		}
	}
	for i, k := range s.honest {
		s.fence(t, s.honest[i:i+1], s.reached(k), "at the end")
	}
	s.judge(t, kinds)
	s.believed(t)
}

// reached are the places where an honest kind arrives: not beyond the link if it is a question to all of the link.
func (s *spoofer) reached(k kind) []*arrivals {
	if strings.HasPrefix(k.what, honestLink) {
		return slices.DeleteFunc(slices.Clone(s.at), func(a *arrivals) bool { return !s.atLink(a) })
	}
	return s.at
}

// atLink is true for the places that are on the attacker's link.
func (s *spoofer) atLink(a *arrivals) bool { return a == s.at[0] || a == s.at[2] }

func (s *spoofer) send(t *testing.T, frames [][]byte) {
	t.Helper()
	for _, f := range frames {
		if _, err := unix.Write(s.fd, f); err != nil {
			t.Fatal(os.NewSyscallError("write", err))
		}
	}
}

// fence waits until honest packets arrive. Lost ones are sent again.
func (s *spoofer) fence(t *testing.T, honest []kind, at []*arrivals, when string) {
	t.Helper()
	for _, k := range honest {
		before := make([]int, len(at))
		for i, a := range at {
			before[i] = a.of(k.key)
		}
		s.send(t, k.frames)
		machines.Eventually(t, "honest packets arrive "+when, func(context.Context) string {
			for i, a := range at {
				if !a.await(k.key, before[i]) {
					s.send(t, k.frames)
					return fmt.Sprintf("%s: none at %s", k.what, a.where)
				}
			}
			return ""
		})
	}
}

// judge prints what arrived.
func (s *spoofer) judge(t *testing.T, kinds []kind) {
	t.Helper()
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(first, last string, cell func(*arrivals) any) {
		fmt.Fprint(w, first)
		for _, a := range s.at {
			fmt.Fprint(w, "\t", cell(a))
		}
		fmt.Fprintln(w, "\t"+last)
	}
	row("kind\tsent", "", func(a *arrivals) any { return a.where })
	for _, k := range slices.Concat(kinds, s.honest) {
		sent := strconv.Itoa(bursts * perBurst * len(k.frames))
		if strings.HasPrefix(k.what, "honest") {
			sent = ""
		}
		row(k.what+"\t"+sent, k.harmless, func(a *arrivals) any { return a.of(k.key) })
	}
	_ = w.Flush() // into memory
	t.Logf("packets of %d kinds that arrived:\n%s", len(kinds), &out)
	for _, k := range kinds {
		for _, a := range s.at {
			if n := a.of(k.key); n > 0 && (k.harmless == "" || !s.atLink(a)) {
				t.Errorf("%s: %d packets arrive at %s", k.what, n, a.where)
			}
		}
	}
	for _, a := range s.at {
		if err := a.lost(); err != nil {
			t.Errorf("%s: %v", a.where, err)
		}
	}
}
