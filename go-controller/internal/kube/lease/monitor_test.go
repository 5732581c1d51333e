package lease

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// monitorBed is a Monitor with a clock of its own, and nodes whose clocks are others.
type monitorBed struct {
	t       *testing.T
	client  *fake.Clientset
	leases  map[string]*coordinationv1.Lease
	monitor *Monitor
	now     time.Time
	skew    map[string]time.Duration
	fails   bool                             // the API server does
	away    bool                             // its database is: it knows only what lists may be made from
	cached  map[string]*coordinationv1.Lease // what lists are made from; nil for what is true
}

func newMonitorBed(t *testing.T, nodes ...string) *monitorBed {
	b := &monitorBed{t: t, client: fake.NewClientset(), leases: map[string]*coordinationv1.Lease{},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), skew: map[string]time.Duration{}}
	b.client.PrependReactor("*", "leases", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if b.fails || a.GetNamespace() != corev1.NamespaceNodeLease {
			return true, nil, errors.New("connection refused")
		}
		if get, ok := a.(k8stesting.GetAction); ok {
			if b.away {
				return true, nil, errors.New("etcdserver: request timed out")
			}
			if l := b.leases[get.GetName()]; l != nil {
				return true, l, nil
			}
			return true, nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), get.GetName())
		}
		if l, ok := a.(k8stesting.ListActionImpl); ok && b.away && l.ListOptions.ResourceVersion != "0" {
			return true, nil, errors.New("etcdserver: request timed out")
		}
		list, from := &coordinationv1.LeaseList{}, b.leases
		if b.cached != nil {
			from = b.cached
		}
		for _, l := range from {
			list.Items = append(list.Items, *l)
		}
		return true, list, nil // the client picks those of the label
	})
	b.restart(nodes...)
	return b
}

// restart is another master's Monitor.
func (b *monitorBed) restart(nodes ...string) {
	b.monitor = NewMonitor(&client.Clients{Kube: b.client}, slog.New(slog.DiscardHandler))
	b.monitor.Follow(nodes)
}

// renews has a Lease be renewed now, by the clock of its node.
func (b *monitorBed) renews(node, lease string, seconds int32) {
	at := metav1.NewMicroTime(b.now.Add(b.skew[node]))
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: lease},
		Spec: coordinationv1.LeaseSpec{RenewTime: &at, LeaseDurationSeconds: &seconds}}
	if lease == nameOf(node) {
		l.Labels = map[string]string{leaseLabel: leaseValue}
	}
	b.leases[lease] = l
}

// signs are of whom a Lease is renewed for a while.
type signs struct{ agents, kubelets []string }

// pass has time go by, with a poll every pollInterval, while those renew their
// Leases. The agents do every renewInterval, and the kubelets every 10 seconds.
func (b *monitorBed) pass(d time.Duration, s signs) {
	b.t.Helper()
	for end := b.now.Add(d); b.now.Before(end); {
		b.now = b.now.Add(time.Second)
		second := b.now.Unix()
		if second%2 == 1 {
			for _, n := range s.agents {
				b.renews(n, nameOf(n), 15)
			}
			for _, n := range s.kubelets {
				if second%10 == 5 {
					b.renews(n, n, 40)
				}
			}
			continue
		}
		if err := b.monitor.poll(b.t.Context(), b.now); err != nil != b.fails && !b.away {
			b.t.Fatalf("poll at %s: %v", b.now, err)
		}
	}
}

// expired checks whose Leases are, and whether that was signalled.
func (b *monitorBed) expired(what string, signalled bool, want ...string) {
	b.t.Helper()
	told := false
	select {
	case <-b.monitor.Signal():
		told = true
	default:
	}
	if got := slices.Sorted(maps.Keys(b.monitor.Expired())); !slices.Equal(got, want) || told != signalled {
		b.t.Errorf("%s: expired %v, signalled %v; want %v, %v", what, got, told, want, signalled)
	}
}

// A dead machine is told from an agent that does not run, whatever its clock
// says, and nobody is told of anything else.
func TestMonitor(t *testing.T) {
	both := []string{"a", "b"}
	all := signs{both, both}
	b := newMonitorBed(t, both...)
	b.skew["b"] = -time.Hour
	b.pass(time.Minute, all)
	b.expired("both live", false)
	b.pass(10*time.Second, signs{both[:1], both[:1]})
	b.expired("b is dead for less than its Lease", false)
	b.pass(12*time.Second, signs{both[:1], both[:1]})
	b.expired("b is dead", true, "b")
	b.pass(time.Minute, signs{both[:1], both[:1]})
	b.expired("b stays dead", false, "b")
	b.pass(4*time.Second, all)
	b.expired("b is back", true)
	b.pass(5*time.Minute, signs{both[:1], both})
	b.expired("b's agent is stopped, its kubelet goes on", false)
	b.pass(time.Minute, all)
	b.pass(time.Minute, signs{both, both[:1]})
	b.expired("b's kubelet is stopped, its agent goes on", false)
	b.pass(time.Minute, signs{both[:1], both[:1]})
	b.expired("now its agent ceases too", true, "b")
	b.pass(time.Minute, signs{both[:1], both})
	b.expired("its kubelet is back", false, "b")
	b.pass(20*time.Second, signs{both[:1], both})
	b.expired("its agent does not come", true)
	b.pass(20*time.Second, all)
	b.expired("and its agent", false)
	b.pass(30*time.Second, signs{})
	b.expired("both are dead", true, "a", "b")
	b.monitor.Follow(both[:1])
	b.pass(2*time.Second, signs{})
	b.expired("b is no gateway any more", true, "a")
	b.monitor.Follow(nil)
	b.pass(2*time.Second, signs{})
	b.expired("none is", true)
	b.client.ClearActions()
	b.pass(time.Minute, signs{})
	if n := len(b.client.Actions()); n != 0 {
		t.Errorf("%d questions without a gateway, want none", n)
	}
}

// What a healthy cluster costs: one question of all gateways at a time.
func TestMonitorRequests(t *testing.T) {
	gateways := []string{"a", "b", "c", "d"}
	b := newMonitorBed(t, gateways...)
	b.pass(20*time.Second, signs{gateways, gateways})
	b.client.ClearActions()
	b.pass(time.Minute, signs{gateways, gateways})
	asked := map[string]int{}
	for _, a := range b.client.Actions() {
		asked[a.GetVerb()]++
	}
	if asked["list"] != 30 || asked["get"] != 0 {
		t.Errorf("in a minute %v, want 30 lists and no get", asked)
	}
}

// As long as the API server does not answer nobody is judged, and then everyone
// has a full grace.
func TestMonitorWithoutServer(t *testing.T) {
	both := []string{"a", "b"}
	b := newMonitorBed(t, both...)
	b.pass(20*time.Second, signs{both, both})
	b.fails = true
	b.pass(time.Minute, signs{})
	b.expired("nobody can renew, nor can we read", false)
	b.fails = false
	b.pass(10*time.Second, signs{})
	b.expired("the server is back, the agents not yet", false)
	b.pass(20*time.Second, signs{both[:1], both[:1]})
	b.expired("one of them does not come back", true, "b")
	b.fails = true
	b.pass(time.Minute, signs{})
	b.expired("who was dead stays so", false, "b")
}

// Whose agent has no Lease, or whose kubelet has none, is not judged.
func TestMonitorOfNodesWithoutLease(t *testing.T) {
	b := newMonitorBed(t, "a", "b")
	b.pass(20*time.Second, signs{[]string{"a"}, []string{"b"}})
	b.pass(time.Minute, signs{})
	b.expired("one Lease is missing of each", false)
}

// The next master begins with whom the last one had taken for dead, gives all
// others a full grace, and hears within seconds who lives.
func TestMonitorPresumes(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e"}
	b := newMonitorBed(t)
	b.pass(30*time.Second, signs{all[:3], all[:4]})
	b.restart(all...)
	b.monitor.PresumeExpired([]string{"b", "c", "d", "e"})
	b.expired("presumed", false, "b", "c", "d", "e")
	b.pass(6*time.Second, signs{all[1:2], all[1:2]})
	b.expired("b lives; d and e have no Lease; nothing is known of a yet", true, "c")
	b.pass(16*time.Second, signs{all[1:2], all[1:3]})
	b.expired("c's kubelet lives, a is dead", true, "a", "c")
	b.pass(time.Minute, signs{all[1:2], all[1:3]})
	b.expired("c's agent does not come", true, "a")
}

// While an API server answers lists and nothing else, since its database is away,
// nobody can renew: nobody is judged, and then everyone has a full grace. It is
// not asked for each gateway in vain.
func TestMonitorWithoutDatabase(t *testing.T) {
	all := []string{"a", "b", "c", "d"}
	b := newMonitorBed(t, all...)
	b.pass(20*time.Second, signs{all, all})
	b.client.ClearActions()
	b.away = true
	b.pass(time.Minute, signs{})
	b.expired("nobody can renew", false)
	lists, gets := 0, 0
	for _, a := range b.client.Actions() {
		switch a.GetVerb() {
		case "list":
			lists++
		case "get":
			gets++
		}
	}
	if lists != 30 || gets != 1 {
		t.Errorf("%d lists and %d gets in a minute, want 30 and 1", lists, gets)
	}
	b.away = false
	b.pass(10*time.Second, signs{})
	b.expired("the database is back, the agents not yet", false)
	b.pass(20*time.Second, signs{all[1:], all[1:]})
	b.expired("one of them does not come back", true, "a")
}

// An API server whose lists are old, or lack Leases, neither kills a gateway nor
// brings one back.
func TestMonitorOldLists(t *testing.T) {
	both := []string{"a", "b"}
	b := newMonitorBed(t, both...)
	b.pass(20*time.Second, signs{both, both})
	b.cached = maps.Clone(b.leases)
	b.pass(time.Minute, signs{both, both})
	b.expired("both live, lists are old", false)
	b.pass(35*time.Second, signs{both[:1], both[:1]})
	b.expired("b is dead, lists are old", true, "b")
	b.cached = nil
	b.pass(10*time.Second, signs{both[:1], both[:1]})
	b.expired("lists are right again", false, "b")
	b.cached = map[string]*coordinationv1.Lease{}
	b.pass(10*time.Second, signs{both[:1], both[:1]})
	b.expired("lists are empty", false, "b")
	b.pass(4*time.Second, signs{both, both})
	b.expired("b is back, lists are empty", true)
}
