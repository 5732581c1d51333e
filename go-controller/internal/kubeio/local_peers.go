package kubeio

import (
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
// after it could not be read; and how long that may take.
const (
	peerRefresh = 5 * time.Minute
	peerRetry   = 10 * time.Second
	peerTimeout = 5 * time.Second
)

// localPeers are the addresses of other Nodes, of which few are needed: each is
// read, and again now and then. A watch of all Nodes would have every agent told
// of what every kubelet says of its own.
type localPeers struct {
	mu      sync.Mutex
	byName  map[string]*peer // those that are needed
	version uint64           // changes with any of their addresses
	woken   chan struct{}    // others are needed
	refresh time.Duration
}

type peer struct {
	addrs []netip.Addr
	due   time.Time // when to read it next; the zero time for at once
	told  string    // why it could not be read last
}

func newLocalPeers() *localPeers {
	return &localPeers{byName: map[string]*peer{}, version: 1, woken: make(chan struct{}, 1), refresh: peerRefresh}
}

// NodeAddresses are the addresses of the Nodes of these names that are known: the
// first InternalIP of each family (Kubernetes API, NodeStatus.addresses). Those
// that are not known are read, and Changed tells when they are; of those that
// the last call did not name nothing is known any more. version is another number
// whenever the result is another one for the same names.
func (l *Local) NodeAddresses(names []string) (addrs map[string][]netip.Addr, version uint64) {
	p := l.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.byName, func(name string, _ *peer) bool { return !slices.Contains(names, name) })
	addrs = make(map[string][]netip.Addr, len(names))
	for _, name := range names {
		switch known := p.byName[name]; {
		case known == nil:
			p.byName[name] = &peer{}
			select {
			case p.woken <- struct{}{}:
			default:
			}
		case len(known.addrs) > 0:
			addrs[name] = known.addrs
		}
	}
	return addrs, p.version
}

// runPeers reads Nodes when they are due, one after the other.
func (l *Local) runPeers(ctx context.Context) {
	tick := time.NewTicker(min(peerRetry, l.peers.refresh))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.peers.woken:
		case <-tick.C:
		}
		changed := false
		for _, name := range l.peers.due(time.Now()) {
			node, err := l.readPeer(ctx, name)
			if ctx.Err() != nil {
				return
			}
			now, told := l.peers.take(name, node, err)
			if told {
				l.log.Warn("what this node sends to itself is not led to another one, whose addresses can't be read", "peer", name, "error", err)
			}
			changed = changed || now
		}
		if changed {
			l.nodeEvent("")
		}
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
// can't be read stays, unless there is none. changed says that it has other
// addresses than before, told that the error is to be told.
func (p *localPeers) take(name string, node *corev1.Node, err error) (changed, told bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byName[name]
	if known == nil {
		return false, false // it is not needed any more
	}
	again := wait.Jitter(p.refresh, 0.2)
	if err != nil && !apierrors.IsForbidden(err) {
		again = min(again, peerRetry)
	}
	known.due = time.Now().Add(again)
	if err != nil && !apierrors.IsNotFound(err) {
		told = known.told != err.Error()
		known.told = err.Error()
		return false, told
	}
	var addrs []netip.Addr
	if err == nil {
		addrs = peerAddresses(node)
	}
	known.told = ""
	if slices.Equal(addrs, known.addrs) {
		return false, false
	}
	known.addrs = addrs
	p.version++
	return true, false
}

// peerAddresses are the first InternalIPs of each family.
func peerAddresses(node *corev1.Node) (out []netip.Addr) {
	for _, s := range localNode(node).InternalIPs {
		a, err := netip.ParseAddr(s)
		if err != nil || slices.ContainsFunc(out, func(o netip.Addr) bool { return o.Is4() == a.Unmap().Is4() }) {
			continue
		}
		out = append(out, a.Unmap())
	}
	return out
}
