package local

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A Node that somebody needs is read again after about peerRefresh. A Node without an address is read again after
// peerRetry, and after twice as long each further time. Reading may take peerTimeout.
const (
	peerRefresh = 5 * time.Minute
	peerRetry   = 2 * time.Second
	peerTimeout = 5 * time.Second
)

// peersRefreshed is how many Nodes are read again after peerRefresh. Of more Nodes each is read accordingly later.
// There may be a thousand agents, and each may need as many Nodes: those of services with few endpoints each.
const peersRefreshed = 60

// peerNews is how often Changed reports Nodes while others are still being read.
const peerNews = time.Second

// peers are the addresses of other Nodes. An agent needs few of them, reads each, and reads it again now and then. A
// watch of all Nodes would send every agent what every kubelet reports.
type peers struct {
	mu      sync.Mutex
	byName  map[string]*peer // those that are needed
	version uint64           // differs after a change of an address, and after a first reading
	woken   chan struct{}    // others are needed
	refresh time.Duration
}

type peer struct {
	addrs   []netip.Addr
	due     time.Time     // when to read it next; the zero time for a Node that was never read
	wait    time.Duration // to the next reading after one without an address; 0 after one with an address
	failure string        // why the last reading failed; "" when it did not
}

func newPeers() *peers {
	return &peers{byName: map[string]*peer{}, version: 1, woken: make(chan struct{}, 1), refresh: peerRefresh}
}

// Peers are other Nodes of which somebody needs the addresses.
type Peers struct {
	// Addrs are the known addresses by Node: the first InternalIP of each family (Kubernetes API,
	// NodeStatus.addresses).
	Addrs map[string][]netip.Addr
	// Version differs after each change of Addrs or Read for the same names.
	Version uint64
	// Read tells that each Node was read at least once, or could not be read.
	Read bool
}

// Peers are the Nodes of these names. Unknown ones are read, and Changed reports when they are. Nodes that this call
// does not name are forgotten.
func (w *Watcher) Peers(names []string) Peers {
	p := w.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	maps.DeleteFunc(p.byName, func(name string, _ *peer) bool { return !wanted[name] })
	out := Peers{Addrs: make(map[string][]netip.Addr, len(names)), Version: p.version, Read: true}
	for _, name := range names {
		known := p.byName[name]
		if known == nil {
			known = &peer{}
			p.byName[name] = known
			select {
			case p.woken <- struct{}{}:
			default:
			}
		}
		if len(known.addrs) > 0 {
			out.Addrs[name] = known.addrs
		}
		out.Read = out.Read && !known.due.IsZero()
	}
	return out
}

// runPeers reads Nodes when they are due, one after the other.
func (w *Watcher) runPeers(ctx context.Context) {
	tick := time.NewTicker(min(peerRetry/2, w.peers.refresh))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.peers.woken:
		case <-tick.C:
		}
		w.readPeers(ctx)
	}
}

// readPeers reads the Nodes that are due.
func (w *Watcher) readPeers(ctx context.Context) {
	changed, notified := false, time.Now()
	var unread []string
	var why error // of the first of them
	for _, name := range w.peers.due(time.Now()) {
		node, err := w.readPeer(ctx, name)
		if ctx.Err() != nil {
			return
		}
		now, report := w.peers.take(name, node, err)
		if report {
			unread, why = append(unread, name), cmp.Or(why, err)
		}
		changed = changed || now
		if changed && time.Since(notified) > peerNews {
			w.notify()
			changed, notified = false, time.Now()
		}
	}
	if changed {
		w.notify()
	}
	if len(unread) > 0 {
		w.log.Warn("addresses of a node with endpoints can't be read: the last known ones are used, if any",
			"peer", unread[0], "others", len(unread)-1, "error", why)
	}
}

// readPeer reads a Node. The API server may answer from its cache.
func (w *Watcher) readPeer(ctx context.Context, name string) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	return w.clients.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
}

// due are the names of the Nodes to read now, sorted.
func (p *peers) due(now time.Time) (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, known := range p.byName {
		if !known.due.After(now) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// take takes in a Node that was read, or why it could not be. A failure leaves what was known, unless there is no such
// Node. changed tells whether what is known changed. report tells whether to log the failure: when it begins, and when
// its kind changes.
func (p *peers) take(name string, node *corev1.Node, err error) (changed, report bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byName[name]
	if known == nil {
		return false, false // nobody needs it any more
	}
	var addrs []netip.Addr
	failure := ""
	switch {
	case err == nil:
		addrs = peerAddresses(node)
	case !apierrors.IsNotFound(err):
		addrs, failure = known.addrs, "error "+string(apierrors.ReasonForError(err))
	}
	report = failure != "" && failure != known.failure
	known.failure = failure
	changed = known.due.IsZero() || !slices.Equal(addrs, known.addrs)
	known.addrs = addrs
	again := p.refresh * time.Duration(max(len(p.byName), peersRefreshed)) / peersRefreshed
	if known.wait = min(max(2*known.wait, peerRetry), again); failure != "" || len(addrs) == 0 {
		again = known.wait
	} else {
		known.wait = 0
	}
	known.due = time.Now().Add(wait.Jitter(again, 0.2))
	if changed {
		p.version++
	}
	return changed, report
}

// peerAddresses are the first InternalIPs of each family by which another host can be reached.
func peerAddresses(node *corev1.Node) (out []netip.Addr) {
	for _, s := range nodeOf(node).InternalIPs {
		a, err := netip.ParseAddr(s)
		known := func(o netip.Addr) bool { return o.Is4() == a.Unmap().Is4() }
		if err != nil || !a.IsGlobalUnicast() || slices.ContainsFunc(out, known) {
			continue
		}
		out = append(out, a.Unmap())
	}
	return out
}
