package kubeio

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

// How often the Node of a name that somebody needs is read again, about; how soon
// after it told no address for the first time, from which on that doubles; and how
// long that may take.
const (
	peerRefresh = 5 * time.Minute
	peerRetry   = 2 * time.Second
	peerTimeout = 5 * time.Second
)

// peersRefreshed is how many Nodes are read again as often as that; of more each
// is read that much more seldom. There may be a thousand agents, and as many Nodes
// that each of them needs: those of services with few endpoints each.
const peersRefreshed = 60

// peerNews is how often Changed tells of Nodes while others are still being read.
const peerNews = time.Second

// localPeers are the addresses of other Nodes, of which few are needed: each is
// read, and again now and then. A watch of all Nodes would have every agent told
// of what every kubelet says of its own.
type localPeers struct {
	mu      sync.Mutex
	byName  map[string]*peer // those that are needed
	version uint64           // changes with any of their addresses, and when one is read for the first time
	woken   chan struct{}    // others are needed
	refresh time.Duration
}

type peer struct {
	addrs []netip.Addr
	due   time.Time     // when to read it next; the zero time for at once, as it never was
	wait  time.Duration // from the last reading, which told no address, to the next; 0 when it told some
	told  string        // what kept it from being read last; "" for nothing
}

func newLocalPeers() *localPeers {
	return &localPeers{byName: map[string]*peer{}, version: 1, woken: make(chan struct{}, 1), refresh: peerRefresh}
}

// Peers are other Nodes of which somebody needs the addresses.
type Peers struct {
	// Addrs are those that are known, by the Node: the first InternalIP of each
	// family (Kubernetes API, NodeStatus.addresses).
	Addrs map[string][]netip.Addr
	// Version is another number whenever Addrs or Read are others for the same names.
	Version uint64
	// Read tells that each was read, or could not be, at least once.
	Read bool
}

// Peers are the Nodes of these names. Those that are not known are read, and
// Changed tells when they are; of those that the last call did not name nothing
// is known any more.
func (l *Local) Peers(names []string) Peers {
	p := l.peers
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
func (l *Local) runPeers(ctx context.Context) {
	tick := time.NewTicker(min(peerRetry/2, l.peers.refresh))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.peers.woken:
		case <-tick.C:
		}
		l.readPeers(ctx)
	}
}

// readPeers reads those that are due.
func (l *Local) readPeers(ctx context.Context) {
	changed, told := false, time.Now()
	var unread []string
	var why error // of the first of them
	for _, name := range l.peers.due(time.Now()) {
		node, err := l.readPeer(ctx, name)
		if ctx.Err() != nil {
			return
		}
		now, tell := l.peers.take(name, node, err)
		if tell {
			unread, why = append(unread, name), cmp.Or(why, err)
		}
		changed = changed || now
		if changed && time.Since(told) > peerNews {
			l.nodeEvent("")
			changed, told = false, time.Now()
		}
	}
	if changed {
		l.nodeEvent("")
	}
	if len(unread) > 0 {
		l.log.Warn("the addresses of a node with endpoints can't be read: own node ports lead to those it had before, or if none are known, not there",
			"peer", unread[0], "others", len(unread)-1, "error", why)
	}
}

// readPeer reads a Node; what the API server remembers of it will do.
func (l *Local) readPeer(ctx context.Context, name string) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	return l.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
}

// due are the names of Nodes to be read now, sorted.
func (p *localPeers) due(now time.Time) (out []string) {
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

// take takes in a Node that was read, or why not; what was known of one that
// can't be read stays, unless there is none. changed says that there is news of
// it, tell that the error is to be told: when it begins, and when it is of another
// kind.
func (p *localPeers) take(name string, node *corev1.Node, err error) (changed, tell bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byName[name]
	if known == nil {
		return false, false // it is not needed any more
	}
	var addrs []netip.Addr
	why := ""
	switch {
	case err == nil:
		addrs = peerAddresses(node)
	case !apierrors.IsNotFound(err):
		addrs, why = known.addrs, "error "+string(apierrors.ReasonForError(err))
	}
	tell = why != "" && why != known.told
	known.told = why
	changed = known.due.IsZero() || !slices.Equal(addrs, known.addrs)
	known.addrs = addrs
	again := p.refresh * time.Duration(max(len(p.byName), peersRefreshed)) / peersRefreshed
	if known.wait = min(max(2*known.wait, peerRetry), again); why != "" || len(addrs) == 0 {
		again = known.wait
	} else {
		known.wait = 0
	}
	known.due = time.Now().Add(wait.Jitter(again, 0.2))
	if changed {
		p.version++
	}
	return changed, tell
}

// peerAddresses are the first InternalIPs of each family that lead to another host.
func peerAddresses(node *corev1.Node) (out []netip.Addr) {
	for _, s := range localNode(node).InternalIPs {
		a, err := netip.ParseAddr(s)
		if err != nil || !a.IsGlobalUnicast() || slices.ContainsFunc(out, func(o netip.Addr) bool { return o.Is4() == a.Unmap().Is4() }) {
			continue
		}
		out = append(out, a.Unmap())
	}
	return out
}
