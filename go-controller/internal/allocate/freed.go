package allocate

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// freedFor is how many seconds what was freed is not given again: until then caches and connections of others may still
// have it. One more makes up for a clock that shows whole seconds.
const freedFor = 60 + 1

// Freed is addresses and subnets that are free but must not be given yet, and the time at which they may be, in seconds
// since 1970.
type Freed map[names.Range]int64

// freedSet is what was freed lately in one network. Claims are honoured all the same.
type freedSet struct {
	now   int64
	until map[netip.Prefix]int64
	order []freedAt              // of until, by time; what was freed again has a later entry, too
	put   map[netip.Prefix]int64 // news for TakeFreed
	over  []netip.Prefix

	subnets map[netip.Prefix]bool // those of until that are no addresses

	reserved        map[netip.Prefix]bool // see Ledger.Reserve
	reservedSubnets map[netip.Prefix]bool // those of reserved that are no addresses
}

// freedAt is what was freed, and when it may be given again.
type freedAt struct {
	prefix netip.Prefix
	until  int64
}

func newFreedSet() *freedSet {
	return &freedSet{until: map[netip.Prefix]int64{}, put: map[netip.Prefix]int64{}, subnets: map[netip.Prefix]bool{}}
}

func (f *freedSet) add(freed ...netip.Prefix) {
	for _, p := range freed {
		f.set(p, f.now+freedFor)
	}
}

func (f *freedSet) set(p netip.Prefix, until int64) {
	f.until[p], f.put[p] = until, until
	f.order = append(f.order, freedAt{p, until})
	if !p.IsSingleIP() {
		f.subnets[p] = true
	}
}

func (f *freedSet) has(a netip.Addr) bool {
	p := ipnet.Single(a)
	_, ok := f.until[p]
	return ok || f.reserved[p]
}

// size is how many addresses and subnets must not be given, at most.
func (f *freedSet) size() int { return len(f.until) + len(f.reserved) }

// overlapping is a freed subnet that overlaps s.
func (f *freedSet) overlapping(s netip.Prefix) (netip.Prefix, bool) {
	for _, subnets := range []map[netip.Prefix]bool{f.subnets, f.reservedSubnets} {
		if subnets[s] {
			return s, true
		}
		for o := range subnets {
			if o.Overlaps(s) {
				return o, true
			}
		}
	}
	return netip.Prefix{}, false
}

// advance forgets what may be given again, and tells whether there was any. What is inUse waits for another minute.
func (f *freedSet) advance(now int64, inUse func() map[netip.Prefix]bool) (released bool) {
	f.now = now
	n := 0
	var longer []netip.Prefix
	for ; n < len(f.order) && f.order[n].until <= now; n++ {
		p := f.order[n].prefix
		if f.until[p] != f.order[n].until { // it was freed again
			continue
		}
		if inUse()[p] {
			longer = append(longer, p)
			continue
		}
		delete(f.until, p)
		delete(f.put, p)
		delete(f.subnets, p)
		f.over = append(f.over, p)
		released = true
	}
	f.order = f.order[n:]
	f.add(longer...)
	return released
}

// around is what was freed around an address: the subnet that has it or, if none does, the address itself.
func (f *freedSet) around(a netip.Addr) (netip.Prefix, bool) {
	for bits := range a.BitLen() + 1 {
		p, err := a.Prefix(bits)
		if err != nil {
			break
		}
		if _, ok := f.until[p]; ok {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// lookAgain is after how many seconds inUse looks again. What ends meanwhile waits for longer: see waitAnew.
const lookAgain = 10

// stillUsed is what was freed and is in use all the same, by network, and the second at which that was found.
type stillUsed struct {
	at    int64
	freed map[names.Network]map[netip.Prefix]bool
}

// inUse finds what was freed and is in use all the same: pods have it whose Node is gone. The machine may run on, and
// the pods with it, until their objects are gone, too.
func (l *Ledger) inUse(s *cluster.State, now int64) map[names.Network]map[netip.Prefix]bool {
	if l.stillUsed.freed != nil && now-l.stillUsed.at < lookAgain {
		return l.stillUsed.freed
	}
	l.stillUsed = stillUsed{now, map[names.Network]map[netip.Prefix]bool{}}
	for p := range s.PodsWithoutNode() {
		for n, had := range l.addressesOf(s, p) {
			freed, ok := l.freedLately(n).around(had)
			if !ok {
				continue
			}
			if l.stillUsed.freed[n] == nil {
				l.stillUsed.freed[n] = map[netip.Prefix]bool{}
			}
			l.stillUsed.freed[n][freed] = true
		}
	}
	return l.stillUsed.freed
}

// addressesOf is what a pod has by its annotation, in each network of which the ledger knows something. What the
// annotation says counts here: it can only have something wait that was freed lately.
func (l *Ledger) addressesOf(s *cluster.State, p *cluster.Pod) iter.Seq2[names.Network, netip.Addr] {
	return func(yield func(names.Network, netip.Addr) bool) {
		for key, had := range annotation.PodNetworksOf(p.Annotated) { // but for what can't be read
			for _, n := range l.networksOf(s, p, key) {
				if l.freedLately(n) == nil {
					continue
				}
				for _, ip := range had.IPs {
					if !yield(n, ip.Addr()) {
						return
					}
				}
			}
		}
	}
}

// networksOf is the network of an entry in a pod's annotation. If the pod is no longer attached to it, because its
// namespace is gone, too, it may be any of those that namespaces share.
func (l *Ledger) networksOf(s *cluster.State, p *cluster.Pod, key string) (out []names.Network) {
	n, attached := s.NetworkOf(p, key)
	out = append(out, n)
	if _, iface := names.EntryOf(key); attached || iface != names.PrimaryInterface {
		return out
	}
	for name, b := range l.books {
		if b.network.Primary && name != n {
			out = append(out, name)
		}
	}
	return out
}

// waitAnew has what a pod had wait from now on, when the pod ends and has no lease any more: its Node was gone.
func (u *update) waitAnew(c cluster.Change) {
	old, ok := c.Old.(*cluster.Pod)
	if !ok || !old.WantsNetwork() || u.ledger.pods[cluster.PodPort{Pod: old.Name}] != nil {
		return
	}
	if now, ok := c.New.(*cluster.Pod); ok && now.UID == old.UID && now.WantsNetwork() {
		return
	}
	for n, had := range u.ledger.addressesOf(u.s, old) {
		f := u.ledger.freedLately(n)
		if freed, ok := f.around(had); ok {
			f.add(freed, ipnet.Single(had)) // its Node may be back, and give the address
		}
	}
}

// Advance tells the time, in seconds since 1970. It is true when objects wait that may get something now: Update looks
// at them again.
func (l *Ledger) Advance(s *cluster.State, now int64) (again bool) {
	for n, f := range l.freedSets() {
		released := f.advance(now, func() map[netip.Prefix]bool { return l.inUse(s, now)[n] })
		if b := l.books[n]; b != nil {
			b.retry = released && b.waits() || b.retry
			again = again || b.retry
		}
	}
	return again
}

func (b *book) waits() bool {
	return len(b.waitingNodes)+len(b.waitingPods)+len(b.join.waiting)+len(b.waitingExits) > 0
}

// NextFree is when Advance may become true by the passing of time; ok is false when nobody waits for that.
func (l *Ledger) NextFree() (at int64, ok bool) {
	for _, b := range l.books {
		if !b.waits() || len(b.freed.order) == 0 {
			continue
		}
		if next := b.freed.order[0].until; !ok || next < at {
			at, ok = next, true
		}
	}
	return at, ok
}

// Keep has the ledger not give what an earlier ledger freed. What might have been given again by now waits for a
// minute: pods that kept it waiting may have ended while no master ran. So does what has a time that can't be right.
func (l *Ledger) Keep(s *cluster.State, freed Freed) {
	now, until := l.freed.now, maps.Clone(freed)
	for r, at := range freed {
		if at <= now || at > now+freedFor {
			until[r] = now + freedFor
		}
	}
	for _, r := range slices.SortedFunc(maps.Keys(until), func(a, b names.Range) int {
		return cmp.Or(cmp.Compare(until[a], until[b]), a.Compare(b.Prefix))
	}) {
		f := l.freedIn(r.Network)
		f.set(r.Prefix, until[r])
		if until[r] == freed[r] { // it is recorded
			delete(f.put, r.Prefix)
		}
	}
	l.Advance(s, now)
}

// freedLately is what was freed lately in a network; nil if the ledger has nothing of it.
func (l *Ledger) freedLately(n names.Network) *freedSet {
	if b := l.books[n]; b != nil {
		return b.freed
	}
	return l.kept[n]
}

// freedIn is the same for a network that may have no book, or none yet: it is never nil.
func (l *Ledger) freedIn(n names.Network) *freedSet {
	if f := l.freedLately(n); f != nil {
		return f
	}
	l.kept[n] = newFreedSet()
	l.kept[n].now = l.freed.now
	return l.kept[n]
}

// Reserve has the ledger not give the addresses and subnets of rows whose removal waits: their objects may still exist.
// It replaces what was reserved before, and is true when some of that is not reserved any more. Claims are honoured all
// the same.
func (l *Ledger) Reserve(held []names.Range) (released bool) {
	of := map[names.Network][]netip.Prefix{}
	for _, r := range held {
		of[r.Network] = append(of[r.Network], r.Prefix)
	}
	for n := range of {
		l.freedIn(n)
	}
	for n, f := range l.freedSets() {
		gone := f.reserve(of[n])
		if b := l.books[n]; b != nil {
			b.retry = b.retry || gone && b.waits()
		}
		released = released || gone
	}
	return released
}

// reserve is Reserve for one network.
func (f *freedSet) reserve(held []netip.Prefix) (released bool) {
	before := f.reserved
	f.reserved, f.reservedSubnets = map[netip.Prefix]bool{}, map[netip.Prefix]bool{}
	for _, p := range held {
		f.reserved[p] = true
		if !p.IsSingleIP() {
			f.reservedSubnets[p] = true
		}
	}
	for p := range before {
		released = released || !f.reserved[p]
	}
	return released
}

// Reserved is true for an address of the cluster's own network that Reserve has named.
func (l *Ledger) Reserved(a netip.Addr) bool { return l.freed.reserved[ipnet.Single(a)] }

// Freed is what was freed lately.
func (l *Ledger) Freed() Freed {
	out := Freed{}
	for n, f := range l.freedSets() {
		for p, until := range f.until {
			out[names.Range{Network: n, Prefix: p}] = until
		}
	}
	return out
}

// TakeFreed is what was freed, and what may be given again, since the last call.
func (l *Ledger) TakeFreed() (freed Freed, over []names.Range) {
	freed = Freed{}
	for n, f := range l.freedSets() {
		for p, until := range f.put {
			freed[names.Range{Network: n, Prefix: p}] = until
		}
		for _, p := range f.over {
			over = append(over, names.Range{Network: n, Prefix: p})
		}
		f.put, f.over = map[netip.Prefix]int64{}, nil
	}
	maps.DeleteFunc(l.kept, func(_ names.Network, f *freedSet) bool { return f.size() == 0 })
	return freed, over
}

// freedSets is what was freed lately, by network.
func (l *Ledger) freedSets() iter.Seq2[names.Network, *freedSet] {
	return func(yield func(names.Network, *freedSet) bool) {
		for n, b := range l.books {
			if !yield(n, b.freed) {
				return
			}
		}
		for n, f := range l.kept {
			if !yield(n, f) {
				return
			}
		}
	}
}

// freeUnneeded has what a node claims, and needs no more, wait as what was just freed. It does so in a ledger's first
// update only: the need may have ended while no master ran. Of the claim, what lies outside the subnets is nobody's.
func (u *update) freeUnneeded(claimed, subnets []netip.Prefix) {
	if u.ledger.updated {
		return
	}
	for _, a := range claimed {
		if slices.ContainsFunc(subnets, func(s netip.Prefix) bool { return s.Contains(a.Addr()) }) {
			u.freed.add(ipnet.Single(a.Addr()))
		}
	}
}

// tryAgain has an update look at all objects that wait.
func (u *update) tryAgain() {
	if !u.retry {
		return
	}
	u.retry = false
	for n := range u.waitingNodes {
		u.nodes[n] = true
	}
	for n := range u.join.waiting {
		u.nodes[n] = true
	}
	for e := range u.waitingExits {
		u.exits[e] = true
	}
	for _, pods := range u.waitingPods {
		for n := range pods {
			u.pods[n] = true
		}
	}
}
