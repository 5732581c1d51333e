package kubeio

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// How often the Leases of gateways are read, how long an answer may take, and
// after which time without one all of them get a full grace again.
const (
	pulseInterval = 2 * time.Second
	pulseTimeout  = 2 * time.Second
	pulseGap      = 3 * pulseInterval
)

// How much later than its agent's a kubelet's last renewal must be for the
// machine to have outlived the agent, and how late a kubelet's renewal may be.
// A kubelet renews after a quarter of its Lease's duration, and somewhat more
// (Kubernetes documentation, "Nodes", heartbeats).
const (
	outlived    = leaseInterval + 2*time.Second
	kubeletLate = 5 * time.Second
)

// agentStarts is how long a gateway whose machine is back waits for its agent: if
// it has booted, it forwards nothing before that has set it up.
const agentStarts = time.Minute

// Pulse tells which gateway nodes are dead, sooner than the node controller:
// those whose agent and whose kubelet both have ceased to renew their Leases. It
// says nothing of a node whose agent has no Lease, or ceased while the kubelet
// goes on: that agent may be in the middle of a restart, and OVN forwards
// without it; not so on a machine that is back, which waits for its agent. Only
// what changes counts, and when we saw that, so that clocks need not agree; and
// only while the API server answers us.
type Pulse struct {
	leases coordinationv1client.LeaseInterface
	log    *slog.Logger
	signal chan struct{}

	mu       sync.Mutex
	followed map[string]bool
	presumed []string // those of the next poll to be taken for silent
	silent   map[string]bool

	// Of Run alone.
	beats map[string]*beat
	last  time.Time // when the Leases were read last; zero for when that is of no account
	doubt bool      // whether the database may be away from the API server, whose memory tells nothing then
	told  string    // the last failure
}

// beat is what is known of one gateway.
type beat struct {
	listed   time.Time // when the agent renewed its Lease, by the node's clock, as the list has it; zero when it has none
	renewed  time.Time // the same as it is known best: a list may be old
	heard    time.Time // by our clock: when one of these became that, or listening began
	silent   bool
	kubelet  time.Time // by the node's clock: the kubelet's last renewal that is known of one that is silent; zero for none
	back     time.Time // by our clock: when the kubelet of one that is silent went on; zero when it has not
	outlived bool      // the machine goes on without the agent
}

// NewPulse is a Pulse that follows no gateway yet.
func NewPulse(c *Clients, log *slog.Logger) *Pulse { return newPulse(c.leases, log) }

func newPulse(leases coordinationv1client.LeasesGetter, log *slog.Logger) *Pulse {
	return &Pulse{
		leases: leases.Leases(corev1.NamespaceNodeLease), log: log, signal: make(chan struct{}, 1),
		followed: map[string]bool{}, silent: map[string]bool{}, beats: map[string]*beat{},
	}
}

// Signal delivers a value when Silent has changed. Values merge.
func (p *Pulse) Signal() <-chan struct{} { return p.signal }

// Follow says which nodes are gateways.
func (p *Pulse) Follow(nodes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.followed)
	for _, n := range nodes {
		p.followed[n] = true
	}
}

// Presume has gateways be silent until something is heard of them.
func (p *Pulse) Presume(nodes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.presumed = append(p.presumed, nodes...)
	for _, n := range nodes {
		p.silent[n] = true
	}
}

// Silent is the gateways that are dead.
func (p *Pulse) Silent() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.silent)
}

// Run looks at the Leases until ctx ends.
func (p *Pulse) Run(ctx context.Context) {
	tick := time.NewTicker(pulseInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := p.poll(ctx, time.Now())
		switch {
		case ctx.Err() != nil:
		case err == nil:
			p.told = ""
		case err.Error() != p.told:
			p.told = err.Error()
			p.log.Warn("gateways that die are noticed later", "error", err)
		}
	}
}

// poll looks once. What it can't get to know it leaves as it was.
func (p *Pulse) poll(ctx context.Context, now time.Time) error {
	if !p.takeFollowed(now) {
		p.last = time.Time{}
		return nil // no gateway, no question
	}
	leases, err := p.list(ctx)
	if err != nil {
		return err
	}
	gap := p.last.IsZero() || now.Sub(p.last) > pulseGap
	p.last, p.doubt = now, false
	var failure error
	for node, b := range p.beats {
		if gap {
			b.heard = now
		}
		if b.listen(now, leases[gatewayLease(node)]) && failure == nil {
			failure = p.examine(ctx, now, node)
		}
	}
	if failure != nil { // maybe nobody can renew: until somebody can, nobody is judged, and then all have a full grace
		p.last, p.doubt = time.Time{}, true
	}
	p.tell()
	return failure
}

// takeFollowed brings beats up to date with what Follow and Presume said, and
// tells whether there are any.
func (p *Pulse) takeFollowed(now time.Time) bool {
	p.mu.Lock()
	maps.DeleteFunc(p.beats, func(n string, _ *beat) bool { return !p.followed[n] })
	for n := range p.followed {
		if p.beats[n] == nil {
			p.beats[n] = &beat{heard: now}
		}
	}
	for _, n := range p.presumed {
		if b := p.beats[n]; b != nil {
			b.silent = true
		}
	}
	p.presumed = nil
	p.mu.Unlock()
	if len(p.beats) == 0 {
		p.tell()
	}
	return len(p.beats) > 0
}

// list is the gateways' Leases by name, as any API server remembers them: that
// costs no database a question. They may be old, also when the database is away
// and nobody can renew anything: whoever seems dead by them is asked for, and
// once that has failed they are as the database has them.
func (p *Pulse) list(ctx context.Context) (map[string]*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()
	o := metav1.ListOptions{LabelSelector: leaseLabel + "=" + leaseValue, ResourceVersion: "0"}
	if p.doubt {
		o.ResourceVersion = ""
	}
	list, err := p.leases.List(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("listing the leases of gateways in %s: %w", corev1.NamespaceNodeLease, err)
	}
	out := map[string]*coordinationv1.Lease{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}

// listen takes in what the list says of a gateway's Lease, of which nil is that
// there is none, and tells whether to ask for it.
func (b *beat) listen(now time.Time, lease *coordinationv1.Lease) bool {
	listed := renewal(lease)
	switch {
	case b.silent: // it is not back because an old list says something else
		return true
	case listed.IsZero(), !listed.Equal(b.listed):
		*b = beat{listed: listed, renewed: listed, heard: now}
		return false
	}
	return !b.outlived && now.Sub(b.heard) >= duration(lease, leaseDuration)
}

// examine asks for both Leases of a node whose agent says nothing, and judges.
func (p *Pulse) examine(ctx context.Context, now time.Time, node string) error {
	b := p.beats[node]
	agent, err := p.get(ctx, gatewayLease(node))
	if err != nil {
		return err
	}
	kubelet, err := p.get(ctx, node)
	if err != nil {
		return err
	}
	renewed, witness := renewal(agent), renewal(kubelet)
	if b.silent && b.renewed.IsZero() {
		b.renewed = renewed // it may be what was said last before it died
	}
	switch {
	case renewed.IsZero(), !renewed.Equal(b.renewed):
		*b = beat{listed: b.listed, renewed: renewed, heard: now}
	case witness.IsZero():
		b.silent, b.outlived = false, true
	case b.silent && b.kubelet.IsZero():
		b.kubelet = witness
	case b.silent && !witness.Equal(b.kubelet):
		if b.kubelet = witness; b.back.IsZero() {
			b.back = now
		}
		b.outlived = now.Sub(b.back) >= agentStarts
		b.silent = !b.outlived
	case !b.silent && witness.Sub(b.renewed) > outlived:
		b.outlived = true
	case !b.silent && now.Sub(b.heard) >= duration(kubelet, 0)/4+kubeletLate:
		b.silent, b.kubelet = true, witness
	}
	if b.outlived && !witness.IsZero() {
		p.log.Info("gateway's agent renews its lease no more, its kubelet does", "node", node)
	}
	return nil
}

// renewal is when a Lease was renewed, by the clock of who did; zero for one
// that is nil or does not say.
func renewal(l *coordinationv1.Lease) time.Time {
	if l == nil || l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

// get is a Lease as it is now, nil when there is none.
func (p *Pulse) get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()
	lease, err := p.leases.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the lease %s/%s: %w", corev1.NamespaceNodeLease, name, err)
	}
	return lease, nil
}

// duration is a Lease's, and at least a least one.
func duration(l *coordinationv1.Lease, least time.Duration) time.Duration {
	if l.Spec.LeaseDurationSeconds == nil {
		return least
	}
	return max(least, time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second)
}

// tell publishes who is silent, if that changed.
func (p *Pulse) tell() {
	silent := map[string]bool{}
	for n, b := range p.beats {
		if b.silent {
			silent[n] = true
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.presumed {
		silent[n] = true // since the poll began
	}
	if maps.Equal(silent, p.silent) {
		return
	}
	p.silent = silent
	select {
	case p.signal <- struct{}{}:
	default:
	}
}
