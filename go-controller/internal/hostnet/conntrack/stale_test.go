package conntrack

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Flows that the kernel could not be had to forget are forgotten later, unless
// they are where they should be again.
func TestServiceFlowsForgottenLater(t *testing.T) {
	var asked []string
	fail := errors.New("no buffer space")
	r := NewStale()
	r.delete = func(_ netlink.InetFamily, s *Stale) error {
		asked = append(asked, fmt.Sprint(len(s.places), len(s.ends)))
		return fail
	}
	entries := func(lines ...string) hostplan.ServicePorts {
		return hostplan.ServicePorts{Entries: strings.Join(lines, "\n")}
	}
	step := func(have, want hostplan.ServicePorts) error {
		changes, err := hostplan.ServiceChanges(want, have)
		if err != nil {
			t.Fatal(err)
		}
		return r.ForgetAfter(changes, want)
	}
	const five, six = "local UDP 0.0.0.0:30080 to 10.1.0.5:8080", "local UDP 0.0.0.0:30080 to 10.1.0.6:8080"
	for _, turn := range [][2]string{{five, six}, {six, five}} {
		if err := step(entries(turn[0]), entries(turn[1])); !errors.Is(err, fail) {
			t.Errorf("a change whose flows are not forgotten: %v", err)
		}
	}
	if err := r.Forget(); !errors.Is(err, fail) {
		t.Errorf("again: %v", err)
	}
	fail = nil
	for range 2 {
		if err := r.Forget(); err != nil {
			t.Errorf("at last: %v", err)
		}
	}
	if want := strings.Repeat("0 1,", 8); strings.Join(asked, ",")+"," != want {
		t.Errorf("asked to forget %v, want one end each, and nothing in the end", asked)
	}
}
