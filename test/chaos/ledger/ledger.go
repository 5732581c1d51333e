// Package ledger follows the addresses of a cluster's pods, and finds what must never happen to them.
package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/test/scale/load"
)

// quarantine is how long a freed address is given to nobody. The master and the ledger hear of a deletion at slightly
// different times.
const quarantine = 60*time.Second - 2*time.Second

// The watch of a busy cluster is silent only if nothing changes or if it is away. What it has missed comes in a moment.
const (
	silence = time.Second
	moment  = time.Second
)

// Ledger follows the addresses of all pods, and records what must never happen: an address of a living pod changes, two
// living pods have the same one, or a freed one is given again too early.
type Ledger struct {
	mu     sync.Mutex
	pods   map[types.UID]entry
	holder map[address]types.UID
	freed  map[address]release
	reused int // addresses that were given again, late enough
	wrong  []string

	given           time.Time // when the last pod was seen to have addresses
	last            time.Time // when the last event arrived
	silent, resumed time.Time // when the last silence began, and when it ended
}

// entry is a living pod with addresses.
type entry struct {
	name, value string
	addrs       []address
	since       time.Time // when its addresses were seen
	unsure      bool      // whether anybody knows of them: see Interrupted
}

// release is when an address was freed, and by whom.
type release struct {
	at time.Time
	by entry
}

// address is unique in its network. Other networks may have the same.
type address struct {
	network string
	netip.Addr
}

func (a address) String() string {
	if a.network == clusterNetwork {
		return a.Addr.String()
	}
	return a.Addr.String() + " of network " + a.network
}

// clusterNetwork is the cluster's own network.
const clusterNetwork = "default"

func newLedger() *Ledger {
	return &Ledger{pods: map[types.UID]entry{}, holder: map[address]types.UID{}, freed: map[address]release{}}
}

// Follow keeps a ledger until ctx ends. Its informer lists and watches again when the API server was away.
func Follow(ctx context.Context, kube kubernetes.Interface) *Ledger {
	l := newLedger()
	informer := informers.NewSharedInformerFactory(kube, 0).Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { l.see(obj.(*corev1.Pod)) },
		UpdateFunc: func(before, obj any) {
			old, pod := before.(*corev1.Pod), obj.(*corev1.Pod)
			if old.UID != pod.UID { // deleted and made anew while the watch was away
				l.missed(old.UID)
			}
			l.see(pod)
		},
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok { // a list lacks it
				l.missed(d.Obj.(*corev1.Pod).UID)
				return
			}
			l.gone(obj.(*corev1.Pod).UID)
		},
	})
	if err != nil {
		l.wrong = append(l.wrong, err.Error())
	}
	go informer.RunWithContext(ctx)
	return l
}

func (l *Ledger) see(p *corev1.Pod) {
	value := p.Annotations[load.PodNetworks]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.earliest(time.Now())
	was, known := l.pods[p.UID]
	switch {
	case known && value != was.value:
		l.fail("pod %s: its annotation changed from %s to %s", was.name, was.value, value)
		return
	case known || value == "":
		return
	}
	e := entry{name: p.Name, value: value, addrs: addresses(value), since: time.Now()}
	if len(e.addrs) == 0 {
		l.fail("pod %s: no address in %s", p.Name, value)
	}
	l.pods[p.UID], l.given = e, e.since
	for _, a := range e.addrs {
		l.give(a, p.UID, e)
	}
}

func (l *Ledger) give(a address, to types.UID, e entry) {
	if other, taken := l.holder[a]; taken {
		l.fail("pod %s has address %s of living pod %s", e.name, a, l.pods[other].name)
	}
	if freed, was := l.freed[a]; was {
		l.reused++
		if rest := time.Since(freed.at); rest < quarantine && !freed.by.unsure {
			l.fail("pod %s has address %s, which pod %s freed %s before; it had had it for %s", e.name, a, freed.by.name,
				rest.Round(time.Millisecond), freed.at.Sub(freed.by.since).Round(time.Millisecond))
		}
	}
	l.holder[a] = to
	delete(l.freed, a)
}

func (l *Ledger) gone(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(uid, l.earliest(time.Now()))
}

// missed records that a pod is gone, nobody knows since when: the watch was away. Whether its addresses are given again
// too early can't be told.
func (l *Ledger) missed(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(uid, time.Now().Add(-quarantine))
}

// earliest is when an event happened at the earliest that arrives now. After a silence the watch may have been away,
// and tells within a moment what has happened since.
func (l *Ledger) earliest(now time.Time) time.Time {
	if now.Sub(l.last) > silence {
		l.silent, l.resumed = l.last, now
	}
	l.last = now
	if now.Sub(l.resumed) < moment {
		return l.silent
	}
	return now
}

func (l *Ledger) release(uid types.UID, since time.Time) {
	e := l.pods[uid]
	for _, a := range e.addrs {
		if l.holder[a] == uid {
			delete(l.holder, a)
			l.freed[a] = release{since, e}
		}
	}
	delete(l.pods, uid)
}

// Interrupted tells that a master was killed, and no other one has started yet. At about the same time a master
// annotates a pod and writes its row. If the row is not there, nobody has had the address on the network. If the pod is
// gone before the next master starts, that one can't know of the address, and may give it again at once.
func (l *Ledger) Interrupted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	unsure := func(e entry) bool { return e.unsure || l.given.Sub(e.since) < moment }
	for uid, e := range l.pods {
		e.unsure = unsure(e)
		l.pods[uid] = e
	}
	for a, f := range l.freed {
		f.by.unsure = unsure(f.by)
		l.freed[a] = f
	}
}

func (l *Ledger) fail(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// Take returns what was wrong since the last call.
func (l *Ledger) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong := l.wrong
	l.wrong = nil
	return wrong
}

// Counts returns how many living pods have addresses, and how many addresses were given again.
func (l *Ledger) Counts() (living, reused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pods), l.reused
}

// addresses reads the annotation of a pod, with keys NETWORK or NETWORK/INTERFACE; none if it is malformed.
func addresses(value string) []address {
	var interfaces map[string]struct {
		IPs []netip.Prefix `json:"ip_addresses"`
	}
	if json.Unmarshal([]byte(value), &interfaces) != nil {
		return nil
	}
	var out []address
	for key, i := range interfaces {
		network, _, _ := strings.Cut(key, "/")
		for _, p := range i.IPs {
			out = append(out, address{network, p.Addr()})
		}
	}
	return out
}
