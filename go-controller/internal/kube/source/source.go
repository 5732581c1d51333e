package source

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
)

// Source watches everything that the cluster is made of. It decodes objects as they arrive and keeps none of them.
// Events of one object that nobody took in between are merged into the last.
type Source struct {
	clients  *client.Clients
	kinds    []kinds.Kind
	contacts reflector.Contacts
	signal   chan struct{}
	// Refusals is what the API server refuses to list or watch.
	Refusals reflector.Refusals
	// Existed tells whether there were objects of a kind before this program started; nil when nobody knows. It may wait
	// until ctx ends. An API server that does not serve such a kind for a moment may be booting.
	Existed func(ctx context.Context, k cluster.Kind) bool

	mu       sync.Mutex
	pending  map[cluster.Ref]cluster.Event
	first    time.Time // when the oldest of pending came
	taken    time.Time // the same of those that the last Take handed out
	problems []cluster.Problem
	reported map[cluster.Ref]uint64 // hashes of problems that were handed out, until the object changes
	seed     maphash.Seed           // of these
	waiting  int                    // kinds that have not been listed yet
}

// New is a Source of the kinds that the master watches; it watches nothing before Run.
func New(c *client.Clients, rows []kinds.Kind) *Source {
	watched := kinds.WatchedBy(rows, kinds.Master)
	s := &Source{
		clients: c, kinds: watched, signal: make(chan struct{}, 1), waiting: len(watched),
		reported: map[cluster.Ref]uint64{}, seed: maphash.MakeSeed(),
	}
	s.contacts.Expect(watched...)
	return s
}

// Run watches until ctx ends.
func (s *Source) Run(ctx context.Context) {
	var watches sync.WaitGroup
	var served reflector.Served
	watches.Go(func() { served.Run(ctx, s.clients.Kinds) })
	for _, k := range s.kinds {
		w := reflector.Watch{Kind: k, Sink: &feed{source: s, kind: k, known: map[cluster.Name]bool{}},
			Refused: s.Refusals.Of(k, func() {}), Heard: s.contacts.Of(k), Served: &served}
		if s.Existed != nil {
			w.Existed = func(ctx context.Context) bool { return s.Existed(ctx, k.Kind) }
		}
		watches.Go(func() { w.Run(ctx, s.clients) })
	}
	watches.Wait()
}

// Behind is why changes in the cluster may not be known; nil when all is well.
func (s *Source) Behind() error { return s.contacts.Behind() }

// Signal delivers a value when there is something to Take. Values merge.
func (s *Source) Signal() <-chan struct{} { return s.signal }

// Synced tells whether everything that existed at the start was handed out, or will be by the next Take.
func (s *Source) Synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting == 0
}

// Take hands out what happened since the last call.
func (s *Source) Take() ([]cluster.Event, []cluster.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending)+len(s.problems) == 0 {
		return nil, nil
	}
	s.taken = s.first
	events := slices.AppendSeq(make([]cluster.Event, 0, len(s.pending)), maps.Values(s.pending))
	problems := s.problems
	s.pending, s.problems = nil, nil
	return events, problems
}

// Received is when the oldest event came that the last Take handed out.
func (s *Source) Received() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// put queues events, and the problems that are new.
func (s *Source) put(events []cluster.Event, problems []cluster.Problem, firstList bool) {
	wrong := s.hashes(problems)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		s.first = time.Now()
		s.pending = make(map[cluster.Ref]cluster.Event, len(events))
	}
	for _, e := range events {
		if was, there := s.pending[e.Ref]; there {
			e.Between = was.Between || was.New == nil || e.New == nil || !was.New.Equal(e.New)
		}
		s.pending[e.Ref] = e
		if _, is := wrong[e.Ref]; !is {
			delete(s.reported, e.Ref)
		}
	}
	for _, p := range problems {
		if was, is := s.reported[p.Ref]; !is || was != wrong[p.Ref] {
			s.problems = append(s.problems, p)
		}
	}
	maps.Copy(s.reported, wrong)
	if firstList {
		s.waiting--
	}
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// hashes is a hash of what is wrong with each object; nil if nothing is.
func (s *Source) hashes(problems []cluster.Problem) (out map[cluster.Ref]uint64) {
	for _, p := range problems {
		if out == nil {
			out = map[cluster.Ref]uint64{}
		}
		out[p.Ref] = maphash.Comparable(s.seed, [3]any{out[p.Ref], p.Reason, p.Message})
	}
	return out
}

// feed makes events of what is seen of one kind. It remembers only names, so that a new list tells which objects are
// gone.
type feed struct {
	source *Source
	kind   kinds.Kind
	known  map[cluster.Name]bool
	listed bool
}

// Known implements reflector.Sink.
func (f *feed) Known() iter.Seq[cluster.Name] { return maps.Keys(f.known) }

// decoded is an object, and what is wrong with it.
type decoded struct {
	cluster.Object
	problems []cluster.Problem
}

// Decode implements reflector.Sink.
func (f *feed) Decode(obj kinds.Object) (any, error) {
	o, wrong := f.kind.Decode(obj)
	if o == nil {
		return nil, fmt.Errorf("decoding a %T as kind %s", obj, f.kind.Kind)
	}
	return decoded{o, wrong}, nil
}

// Put implements reflector.Sink.
func (f *feed) Put(came []reflector.Item, gone []cluster.Name, listed bool) error {
	events := make([]cluster.Event, 0, len(came)+len(gone))
	var problems []cluster.Problem
	for _, it := range came {
		o, ok := it.Value.(decoded)
		if !ok {
			return fmt.Errorf("taking a %T as kind %s: want it decoded", it.Value, f.kind.Kind)
		}
		events = append(events, cluster.Event{Ref: o.Ref(), New: o.Object})
		problems = append(problems, o.problems...)
	}
	for _, n := range gone {
		delete(f.known, n)
		events = append(events, cluster.Event{Ref: cluster.Ref{Kind: f.kind.Kind, Name: n}})
	}
	for _, e := range events[:len(came)] {
		f.known[e.Ref.Name] = true
	}
	f.source.put(events, problems, listed && !f.listed)
	f.listed = f.listed || listed
	return nil
}
