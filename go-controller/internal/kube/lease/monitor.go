package lease

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// The Monitor reads the Leases of gateways every pollInterval, and an answer may take pollTimeout. After pollGap
// without an answer all gateways get the full time to renew again.
const (
	pollInterval = 2 * time.Second
	pollTimeout  = 2 * time.Second
	pollGap      = 3 * pollInterval
)

// A machine has outlived its agent when the kubelet renewed its Lease later than the agent by more than outlivedBy. A
// kubelet's renewal may be late by kubeletLate. A kubelet renews after a quarter of its Lease's duration, and somewhat
// more (Kubernetes documentation, "Nodes", heartbeats).
const (
	outlivedBy  = renewInterval + 2*time.Second
	kubeletLate = 5 * time.Second
)

// agentStarts is how long the Monitor waits for the agent of a gateway whose machine is back. A machine that has booted
// forwards nothing before the agent has set it up.
const agentStarts = time.Minute

// Monitor reports gateways whose machines are down, sooner than the node controller does. A gateway is down when
// neither its agent nor its kubelet renews its Lease. While the kubelet goes on, OVN forwards without the agent, which
// may be restarting. A gateway without a Lease is never down. A machine that is back stays down until its agent starts.
//
// Clocks need not agree: only changes of a renewal time count, and when the Monitor saw them. While the API server does
// not answer, nothing is concluded.
type Monitor struct {
	leases coordinationv1client.LeaseInterface
	log    *slog.Logger
	signal chan struct{}

	mu       sync.Mutex
	followed map[string]bool
	presumed []string // gateways that the next poll takes as down
	down     map[string]bool

	// Of Run alone.
	gateways map[string]*gateway
	last     time.Time // of the last answer; zero when the next answer counts as the first
	doubt    bool      // the API server may have lost its database: then its cache proves nothing
	failure  string    // the last one, as it was logged
}

// gateway is what is known of one gateway. Times are by the node's clock where said so, otherwise by ours.
type gateway struct {
	listed   time.Time // node's clock: the agent's last renewal in the list; zero when it has no Lease
	renewed  time.Time // node's clock: the agent's last renewal that is known; a list may be old
	heard    time.Time // when one of these changed, or monitoring began
	down     bool
	kubelet  time.Time // node's clock: the kubelet's last renewal that is known of a gateway that is down; zero for none
	back     time.Time // when the kubelet of a gateway that is down renewed again; zero when it has not
	outlived bool      // the machine goes on without the agent
}

// NewMonitor is a Monitor that follows no gateway yet.
func NewMonitor(c *client.Clients, log *slog.Logger) *Monitor {
	return &Monitor{
		leases: c.GatewayLeases().Leases(Namespace), log: log, signal: make(chan struct{}, 1),
		followed: map[string]bool{}, down: map[string]bool{}, gateways: map[string]*gateway{},
	}
}

// Signal delivers a value when Expired has changed. Values merge.
func (m *Monitor) Signal() <-chan struct{} { return m.signal }

// Follow says which nodes are gateways.
func (m *Monitor) Follow(nodes []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.followed)
	for _, n := range nodes {
		m.followed[n] = true
	}
}

// PresumeExpired takes gateways as down until one of their Leases is renewed.
func (m *Monitor) PresumeExpired(nodes []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.presumed = append(m.presumed, nodes...)
	for _, n := range nodes {
		m.down[n] = true
	}
}

// Expired are the gateways that are down.
func (m *Monitor) Expired() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.down)
}

// Run looks at the Leases until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := m.poll(ctx, time.Now())
		switch {
		case ctx.Err() != nil:
		case err == nil:
			m.failure = ""
		case err.Error() != m.failure:
			m.failure = err.Error()
			m.log.Warn("gateways that die are noticed later", "error", err)
		}
	}
}

// poll looks once. What it cannot find out stays as it was.
func (m *Monitor) poll(ctx context.Context, now time.Time) error {
	if !m.takeFollowed(now) {
		m.last = time.Time{}
		return nil // without gateways there is nothing to ask
	}
	leases, err := m.list(ctx)
	if err != nil {
		return err
	}
	gap := m.last.IsZero() || now.Sub(m.last) > pollGap
	m.last, m.doubt = now, false
	var failure error
	for node, g := range m.gateways {
		if gap {
			g.heard = now
		}
		if g.listen(now, leases[nameOf(node)]) && failure == nil {
			failure = m.examine(ctx, now, node)
		}
	}
	if failure != nil {
		// Maybe nobody can renew. Until somebody can, nobody is judged, and then all have the full time again.
		m.last, m.doubt = time.Time{}, true
	}
	m.publish()
	return failure
}

// takeFollowed brings gateways up to date with Follow and PresumeExpired, and tells whether there are any.
func (m *Monitor) takeFollowed(now time.Time) bool {
	m.mu.Lock()
	maps.DeleteFunc(m.gateways, func(n string, _ *gateway) bool { return !m.followed[n] })
	for n := range m.followed {
		if m.gateways[n] == nil {
			m.gateways[n] = &gateway{heard: now}
		}
	}
	for _, n := range m.presumed {
		if g := m.gateways[n]; g != nil {
			g.down = true
		}
	}
	m.presumed = nil
	m.mu.Unlock()
	if len(m.gateways) == 0 {
		m.publish()
	}
	return len(m.gateways) > 0
}

// list is the gateways' Leases by name, from the API server's cache, which spares its database. The cache may be old,
// also when the database is away and nobody can renew anything. So whoever seems down by it is asked for one by one. If
// that fails, the next list comes from the database.
func (m *Monitor) list(ctx context.Context) (map[string]*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	o := metav1.ListOptions{LabelSelector: Selector(), ResourceVersion: "0"}
	if m.doubt {
		o.ResourceVersion = ""
	}
	list, err := m.leases.List(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("listing the leases of gateways in %s: %w", Namespace, err)
	}
	out := map[string]*coordinationv1.Lease{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}

// listen takes in a gateway's Lease from the list, nil for none, and tells whether to ask for it.
func (g *gateway) listen(now time.Time, lease *coordinationv1.Lease) bool {
	listed := renewal(lease)
	switch {
	case g.down: // it is not back because an old list says something else
		return true
	case listed.IsZero(), !listed.Equal(g.listed):
		*g = gateway{listed: listed, renewed: listed, heard: now}
		return false
	}
	return !g.outlived && now.Sub(g.heard) >= duration(lease, leaseDuration)
}

// examine asks for both Leases of a node whose agent has ceased to renew, and judges.
func (m *Monitor) examine(ctx context.Context, now time.Time, node string) error {
	g := m.gateways[node]
	agent, err := m.get(ctx, nameOf(node))
	if err != nil {
		return err
	}
	kubelet, err := m.get(ctx, node)
	if err != nil {
		return err
	}
	byAgent, byKubelet := renewal(agent), renewal(kubelet)
	if g.down && g.renewed.IsZero() {
		g.renewed = byAgent // it may be the last renewal before the machine died
	}
	switch {
	case byAgent.IsZero(), !byAgent.Equal(g.renewed):
		*g = gateway{listed: g.listed, renewed: byAgent, heard: now}
	case byKubelet.IsZero():
		g.down, g.outlived = false, true
	case g.down && g.kubelet.IsZero():
		g.kubelet = byKubelet
	case g.down && !byKubelet.Equal(g.kubelet):
		if g.kubelet = byKubelet; g.back.IsZero() {
			g.back = now
		}
		g.outlived = now.Sub(g.back) >= agentStarts
		g.down = !g.outlived
	case !g.down && byKubelet.Sub(g.renewed) > outlivedBy:
		g.outlived = true
	case !g.down && now.Sub(g.heard) >= duration(kubelet, 0)/4+kubeletLate:
		g.down, g.kubelet = true, byKubelet
	}
	if g.outlived && !byKubelet.IsZero() {
		m.log.Info("gateway's agent renews its lease no more, its kubelet does", "node", node)
	}
	return nil
}

// renewal is when a Lease was renewed, by the clock of its holder. It is zero for no Lease, and for one that was never
// renewed.
func renewal(l *coordinationv1.Lease) time.Time {
	if l == nil || l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

// get is a Lease as it is now, nil when there is none.
func (m *Monitor) get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	lease, err := m.leases.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the lease %s/%s: %w", Namespace, name, err)
	}
	return lease, nil
}

// duration is a Lease's duration, and at least a least one.
func duration(l *coordinationv1.Lease, least time.Duration) time.Duration {
	if l.Spec.LeaseDurationSeconds == nil {
		return least
	}
	return max(least, time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second)
}

// publish makes known who is down, if that changed.
func (m *Monitor) publish() {
	down := map[string]bool{}
	for n, g := range m.gateways {
		if g.down {
			down[n] = true
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.presumed {
		down[n] = true // since the poll began
	}
	if maps.Equal(down, m.down) {
		return
	}
	m.down = down
	select {
	case m.signal <- struct{}{}:
	default:
	}
}
