package liveness

import (
	"context"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// one is a monitor that finds out one thing.
type one struct {
	signal chan struct{}
	name   string
}

func (o one) Signal() <-chan struct{} { return o.signal }

func (o one) Take() []cluster.Event { return []cluster.Event{{Ref: cluster.DomainNameRef(o.name)}} }

func (o one) Recall(*cluster.State, *ovsdb.Session) []cluster.Event { return o.Take() }

func (o one) Changed(*cluster.State, []cluster.Change) []cluster.Problem {
	return []cluster.Problem{{Reason: o.name}}
}

// What each of joined monitors finds out is found out, and each one's signal is passed on.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := one{make(chan struct{}), "a"}, one{make(chan struct{}), "b"}
		j := Join(a, b)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { j.Run(ctx); close(ended) }()
		for _, m := range []one{a, b, b} {
			m.signal <- struct{}{}
			<-j.Signal()
		}
		a.signal <- struct{}{}
		b.signal <- struct{}{} // merges with the first
		synctest.Wait()
		if n := len(j.Signal()); n != 1 {
			t.Errorf("%d signals wait, want 1", n)
		}
		for what, events := range map[string][]cluster.Event{"Take": j.Take(), "Recall": j.Recall(nil, nil)} {
			if names := []string{events[0].Ref.Name.Name, events[1].Ref.Name.Name}; !slices.Equal(names, []string{"a", "b"}) {
				t.Errorf("%s: %v", what, names)
			}
		}
		if p := j.Changed(nil, nil); len(p) != 2 {
			t.Errorf("Changed: %v", p)
		}
		cancel()
		<-ended
	})
}
