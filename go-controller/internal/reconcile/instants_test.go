package reconcile

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// instants is a small cluster with policies that changes. Its transactions are full at once, so that a change that may
// be split is split.
type instants struct {
	*rand.Rand
	core    *core.Core
	db      *nb.Database
	dirty   *dirtySet
	objects map[cluster.Ref]cluster.Object
	made    int
}

func newInstants(seed uint64) *instants {
	schema, conf := nb.NewSchema(), bedConfig()
	conf.Multitenant = seed%3 == 0
	x := &instants{rand.New(rand.NewPCG(seed, 7)), core.New(conf, schema, all.Translators(schema)),
		nb.NewDatabase(schema), newDirtySet(), map[cluster.Ref]cluster.Object{}, 0}
	x.core.Start()
	for _, o := range x.core.Owners() {
		x.dirty.add(o, fullPass)
	}
	for i := range 2 {
		x.put(&cluster.Node{Name: fmt.Sprintf("n%d", i), UID: "u"})
		x.put(&cluster.Namespace{Name: fmt.Sprintf("ns%d", i), UID: "u"})
	}
	for range 8 {
		x.put(x.pod())
	}
	return x
}

// put changes an object, or deletes it when it is there and o is nil.
func (x *instants) put(o cluster.Object) {
	x.objects[o.Ref()] = o
	x.apply(cluster.Event{Ref: o.Ref(), New: o})
}

func (x *instants) apply(events ...cluster.Event) {
	for _, o := range x.core.Step(events).Dirty {
		x.dirty.add(o, clusterChange)
	}
}

func (x *instants) labels() cluster.Labels {
	return cluster.NewLabels(map[string]string{"a": fmt.Sprint(x.IntN(2)), "b": fmt.Sprint(x.IntN(2))})
}

func (x *instants) selector() cluster.LabelSelector {
	if x.IntN(4) == 0 {
		return cluster.NewLabelSelector()
	}
	return cluster.NewLabelSelector(cluster.Requirement{Key: []string{"a", "b"}[x.IntN(2)], Operator: cluster.In,
		Values: []string{fmt.Sprint(x.IntN(2))}})
}

func (x *instants) name(kind string, n int) cluster.Name {
	return cluster.Name{Namespace: fmt.Sprintf("ns%d", x.IntN(2)), Name: fmt.Sprintf("%s%d", kind, x.IntN(n))}
}

// pod is a new pod, or one that is there with other labels and ports.
func (x *instants) pod() cluster.Object {
	x.made++
	p := &cluster.Pod{Name: x.name("p", 6), UID: fmt.Sprint(x.made), Node: fmt.Sprintf("n%d", x.IntN(2))}
	if old, ok := x.objects[p.Ref()].(*cluster.Pod); ok {
		*p = *old
	}
	p.Labels = x.labels()
	p.Ports = cluster.NewNamedPorts(map[cluster.PortName]uint16{
		{Protocol: cluster.TCP, Name: "web"}: uint16(8080 + x.IntN(2))})
	return p
}

func (x *instants) policy() cluster.Object {
	n := &cluster.NetworkPolicy{Name: x.name("np", 3), UID: "u", Pods: x.selector()}
	for _, d := range []*cluster.PolicyRules{&n.Ingress, &n.Egress} {
		if d.Isolates = x.IntN(3) > 0; !d.Isolates {
			continue
		}
		for range 1 + x.IntN(2) {
			d.Rules = append(d.Rules, x.rule(n.Name.Namespace))
		}
	}
	return n
}

// clusterPolicy is one of few, so that often there is none: the first moves the rows of all others to other tiers.
func (x *instants) clusterPolicy() cluster.Object {
	p := &cluster.TieredPolicy{Name: fmt.Sprintf("cnp%d", x.IntN(2)), UID: "u", Priority: x.IntN(2),
		Tier: []cluster.PolicyTier{cluster.AdminTier, cluster.BaselineTier}[x.IntN(2)],
		Pods: cluster.PodSelector{Namespaces: x.selector(), Pods: x.selector()}, Logging: x.logging()}
	for _, rules := range []*[]cluster.TieredRule{&p.Ingress, &p.Egress} {
		for range x.IntN(3) {
			*rules = append(*rules, cluster.TieredRule{PolicyRule: x.rule(""),
				Action: []cluster.PolicyAction{cluster.Accept, cluster.Deny, cluster.Pass}[x.IntN(3)]})
		}
	}
	return p
}

func (x *instants) logging() (out cluster.Logging) {
	for _, severity := range []*cluster.Severity{&out.Allow, &out.Deny} {
		*severity = []cluster.Severity{"", cluster.SeverityInfo, cluster.SeverityAlert}[x.IntN(3)]
	}
	return out
}

func (x *instants) rule(namespace string) cluster.PolicyRule {
	r := cluster.PolicyRule{AnyPort: x.IntN(2) == 0, Ports: []cluster.PolicyPort{
		{Protocol: cluster.TCP, First: 80, Last: 80},
		{Protocol: cluster.TCP, Name: "web"}}[x.IntN(2):]}
	peer := &cluster.PodSelector{Namespace: namespace, Pods: x.selector()}
	if namespace == "" || x.IntN(2) == 0 {
		peer = &cluster.PodSelector{Namespaces: x.selector(), Pods: x.selector()}
	}
	r.Peers = []cluster.PolicyPeer{{Pods: peer}}
	return r
}

// change changes some objects at once.
func (x *instants) change() {
	var events []cluster.Event
	for range 1 + x.IntN(6) {
		var o cluster.Object
		switch n := x.IntN(10); {
		case n < 5:
			o = x.pod()
		case n < 6:
			o = &cluster.Namespace{Name: fmt.Sprintf("ns%d", x.IntN(2)), UID: "u", Labels: x.labels(),
				Logging: x.logging(), Tenant: []string{"", "", "ns0", "ns1", cluster.GlobalTenant}[x.IntN(5)]}
		case n < 7:
			o = x.clusterPolicy()
		default:
			o = x.policy()
		}
		e := cluster.Event{Ref: o.Ref(), New: o}
		if x.objects[o.Ref()] = o; o.Ref().Kind != cluster.KindNamespace && x.IntN(4) == 0 {
			e.New = nil
			delete(x.objects, o.Ref())
		}
		events = append(events, e)
	}
	x.apply(events...)
}

// send carries out the next transaction, as the loop does. It is false when there is none.
func (x *instants) send(t *testing.T) bool {
	t.Helper()
	b := &batch{x.core.NewBatch(x.db, nil), map[nb.Owner]cause{}, map[nb.Owner]time.Time{}}
	b.Full = 1
	x.dirty.take(time.Unix(1, 0), filling{&Loop{Config: Config{Core: x.core}, dirty: x.dirty}, b})
	b.Settle()
	for _, f := range b.Failed {
		if _, waits := f.MissingParent(); !waits {
			t.Fatal(f.Err)
		}
		x.dirty.add(f.Owner, clusterChange)
	}
	if err := x.db.Apply(b.Plans...); err != nil {
		t.Fatal(err)
	}
	return len(b.Plans) > 0
}

// question is whether a pod may connect to a port of another. Pods are told apart by their UIDs.
type question struct {
	from, to, port string
	v4             bool
}

// answers asks the rows about all pods that are in the database.
func (x *instants) answers(t *testing.T) map[question]bool {
	t.Helper()
	out, e := map[question]bool{}, verdict.New(x.db)
	for _, from := range x.ends() {
		for _, to := range x.ends() {
			for name, port := range map[string]uint16{"80": 80, "8080": 8080, "8081": 8081} {
				for i, src := range from.addrs {
					dst := to.addrs[i]
					v, err := e.Connection(verdict.Packet{Inport: from.port, Outport: to.port, Src: src, Dst: dst,
						Protocol: verdict.TCP, SrcPort: 40000, DstPort: port}, netip.AddrPort{})
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range v.Steps {
						for _, acl := range s.Void {
							t.Fatalf("an ACL names what is not there: %s", acl.Match)
						}
					}
					if from.port != to.port {
						out[question{from.uid, to.uid, name, dst.Is4()}] = v.Allowed
					}
				}
			}
		}
	}
	return out
}

// place is a pod's in the database.
type place struct {
	uid, port string
	addrs     []netip.Addr
}

// ends lists the pods with a port in the database, those of the state as it is to be.
func (x *instants) ends() []place {
	var out []place
	for name, pod := range x.core.State.Pods {
		o := nb.Owner{Kind: names.KindPod, Name: name.String()}
		if len(x.db.Owned(o)) == 0 {
			continue
		}
		p := place{pod.UID, names.Own.LogicalPort(name.Namespace, name.Name, ""),
			cluster.PodAddrs(x.core.State.PodNetworks[cluster.PodPort{Pod: name}])}
		out = append(out, p)
	}
	return out
}

// No transaction denies what is allowed before and after a change, or allows what is denied before and after it,
// however many transactions the change takes. No ACL ever names a group or set that is not there.
func TestNoInstantIsWrong(t *testing.T) {
	transactions, asked := 0, 0
	fresh := rand.Uint64()
	t.Logf("a new seed: %d", fresh)
	for seed := range uint64(26) {
		if seed == 25 {
			seed = fresh
		}
		x := newInstants(seed)
		for x.send(t) {
		}
		for step := range 12 {
			n, m := x.noInstantIsWrong(t, fmt.Sprintf("seed %d, step %d", seed, step))
			transactions, asked = transactions+n, asked+m
		}
	}
	t.Logf("%d answers after %d transactions", asked, transactions)
}

// noInstantIsWrong changes objects, and asks before, after each transaction, and after all of them.
func (x *instants) noInstantIsWrong(t *testing.T, what string) (transactions, asked int) {
	t.Helper()
	before := x.answers(t)
	x.change()
	var during []map[question]bool
	for x.send(t) {
		during = append(during, x.answers(t))
	}
	after := x.answers(t)
	for i, now := range during {
		for q, a := range now {
			was, there := before[q]
			asked++
			if will, stays := after[q]; there && stays && was == will && a != was {
				t.Fatalf("%s, transaction %d of %d: %+v: allowed %v, before and after %v", what, i+1, len(during), q, a, was)
			}
		}
	}
	return len(during), asked
}
