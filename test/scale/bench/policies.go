package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// phasePolicies measures network policies: when they are in Northbound, when they are in a real node's flows, and what
// they cost a restart.
const phasePolicies = "policies"

const (
	policiesEach        = 2   // made at once, in each namespace
	policyPods          = 10  // of each namespace
	maxPolicyNamespaces = 200 // a pod of each is on the real node, whose subnet is a /24
	podsPerPolicy       = 10  // at the restart
	firstPolicyPort     = 10000
)

// Namespaces of phase policies: of a policy that concerns no pod, and of pods that no policy concerns.
const (
	lonePolicy  = "policies-none"
	unregulated = "policies-free"
)

// The pods of a namespace are in two groups, by this label. groups lists its values.
const groupLabel = "group"

func groups() []string { return []string{"servers", "clients"} }

// policyPod is the i-th pod of a namespace.
func policyPod(namespace string, i int, node string) *corev1.Pod {
	p := load.Pod(namespace, i, 1)
	p.Spec.NodeName = node
	p.Labels[groupLabel] = groups()[i%len(groups())]
	// Nobody removes it from a node that nobody reports about.
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return p
}

// policiesOf lists the first n policies of each namespace, without those that come before. Their ports are all
// different. One policy isolates every pod of its namespace. The others isolate its servers.
func policiesOf(namespaces []string, before, n int) (out []load.Policy) {
	for i, namespace := range namespaces {
		for j := before; j < n; j++ {
			p := load.Policy{Namespace: namespace, Number: j, Port: firstPolicyPort + i + j*len(namespaces)}
			if j == 0 {
				p.Clients = map[string]string{groupLabel: groups()[1]}
			} else {
				p.Pods = map[string]string{groupLabel: groups()[0]}
			}
			out = append(out, p)
		}
	}
	return out
}

// policyNamespaces makes the namespaces.
func policyNamespaces(ctx context.Context, kube kubernetes.Interface, n int) (names []string, err error) {
	for i := range n {
		names = append(names, fmt.Sprintf("policies-%03d", i))
	}
	all := append(slices.Clone(names), lonePolicy, unregulated)
	return names, load.Parallel(ctx, len(all), func(ctx context.Context, i int) error {
		return load.Namespace(ctx, kube, all[i])
	})
}

// runPolicies measures first without a real node, and then with one.
func runPolicies(ctx context.Context, c Config, r *Report, progress io.Writer) error {
	if err := runPolicyRows(ctx, c, r); err != nil {
		return err
	}
	return runPolicyFlows(ctx, c, r, progress)
}

// policies measures the master with policies.
type policies struct {
	*bench
	seen       *load.PolicyObserver
	namespaces []string
	each       int // pods of each namespace
	free       int // pods that no policy concerns
}

func runPolicyRows(ctx context.Context, c Config, report *Report) (err error) {
	ctx, cancel := context.WithTimeout(ctx, phaseTimeout)
	defer cancel()
	r, err := rig.New(ctx, c.Programs)
	if err != nil {
		return err
	}
	p := &policies{bench: &bench{Config: c, rig: r, report: report}}
	defer func() {
		if p.seen != nil {
			err = errors.Join(err, p.seen.Close())
		}
		err = errors.Join(err, p.close())
	}()
	if p.seen, err = load.ObservePolicies(r.NB.Socket); err != nil {
		return err
	}
	if p.observer, err = load.Observe(ctx, r.Kube, r.NB.Socket); err != nil {
		return err
	}
	if p.namespaces, err = policyNamespaces(ctx, r.Kube, c.PolicyNamespaces); err != nil {
		return err
	}
	creations, err := p.rawPolicies(ctx)
	if err != nil {
		return err
	}
	if err := p.populate(ctx); err != nil {
		return err
	}
	if err := p.firstPolicy(ctx); err != nil {
		return err
	}
	if err := p.policiesAtOnce(ctx, creations); err != nil {
		return err
	}
	return p.restarts(ctx)
}

// rawPolicies makes policies while no master runs, and removes them. It returns the API server's rate.
func (p *policies) rawPolicies(ctx context.Context) (perSec float64, err error) {
	all := policiesOf(p.namespaces, 0, policiesEach)
	before, err := spent(p.rig, nil)
	if err != nil {
		return 0, err
	}
	began, err := load.CreatePolicies(ctx, p.rig.Kube, all)
	if err != nil {
		return 0, err
	}
	perSec = perSecond(len(all), time.Since(began))
	after, err := spent(p.rig, nil)
	if err != nil {
		return 0, err
	}
	p.report.disturbed("raw creations of policies", after.sub(before))
	p.report.add(phasePolicies, "raw: creations", "%.0f policies/s", perSec).
		beside("%d policies, %d at a time, no master about", len(all), load.Workers)
	return perSec, load.DeletePolicies(ctx, p.rig.Kube, p.namespaces)
}

// populate starts the master, and makes the nodes and pods.
func (p *policies) populate(ctx context.Context) (err error) {
	if err := load.Nodes(ctx, p.rig.Kube, p.Nodes); err != nil {
		return err
	}
	if p.master, err = p.rig.StartMaster(ctx); err != nil {
		return err
	}
	if _, err := p.master.WaitReady(ctx); err != nil {
		return err
	}
	if err := load.WaitNodes(ctx, p.rig.Kube, p.Nodes); err != nil {
		return err
	}
	if err := p.freePod(ctx); err != nil { // the namespace has all its rows from then on
		return err
	}
	return p.growTo(ctx, policyPods)
}

// growTo makes pods until there are so many in each namespace.
func (p *policies) growTo(ctx context.Context, each int) error {
	missing := each - p.each
	err := load.Parallel(ctx, missing*len(p.namespaces), func(ctx context.Context, i int) error {
		pod := policyPod(p.namespaces[i/missing], p.each+i%missing, load.NodeName((p.each*len(p.namespaces)+i)%p.Nodes))
		if _, err := p.rig.Kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making a pod: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, n := range p.namespaces {
		if _, _, err := p.done(ctx, n, each); err != nil {
			return err
		}
	}
	p.each = each
	return nil
}

// freePod makes a pod that no policy concerns, and waits until it has its network. Everything that was to be written
// before is written then.
func (p *policies) freePod(ctx context.Context) error {
	if _, _, err := load.CreatePod(ctx, p.rig.Kube, unregulated, p.free, p.Nodes); err != nil {
		return err
	}
	p.free++
	_, _, err := p.done(ctx, unregulated, p.free)
	return err
}

// firstPolicy measures the first policy of all. It brings rows for each node.
func (p *policies) firstPolicy(ctx context.Context) error {
	before, err := p.mark(ctx)
	if err != nil {
		return err
	}
	sent, answered, err := load.CreatePolicy(ctx, p.rig.Kube, load.Policy{Namespace: lonePolicy,
		Port: firstPolicyPort - 1})
	if err != nil {
		return err
	}
	written, err := p.seen.Written.Wait(ctx, lonePolicy, 1)
	if err != nil {
		return err
	}
	if err := p.freePod(ctx); err != nil {
		return err
	}
	now, err := p.mark(ctx)
	if err != nil {
		return err
	}
	wrote := now.counts.Sub(before.counts)
	operations := wrote.Operations - ownOperations
	p.report.add(phasePolicies, "the first policy of all: request to Northbound", "%s", milliseconds(written.Sub(sent))).
		beside("%d operations with %d nodes; the request itself %s", operations, p.Nodes, milliseconds(answered.Sub(sent)))
	if most := maxIsolationOperations*p.Nodes + maxPolicyOperations; wrote.Refused != 0 || operations > most {
		p.report.violate("the first policy: %d operations, %d transactions refused, want at most %d and none", operations,
			wrote.Refused, most)
	}
	return nil
}

// What policies may take with one address family.
const (
	maxIsolationOperations = 10 // of a node, at the first policy of all: two groups, and the ACLs in them
	maxPolicyOperations    = 4  // of a policy: its ACL, its subject's group, and its clients' set
)

// policiesAtOnce measures many policies made at once.
func (p *policies) policiesAtOnce(ctx context.Context, limit float64) error {
	all := policiesOf(p.namespaces, 0, policiesEach)
	before, err := p.mark(ctx)
	if err != nil {
		return err
	}
	began, err := load.CreatePolicies(ctx, p.rig.Kube, all)
	if err != nil {
		return err
	}
	created := time.Since(began)
	last, err := p.written(ctx, policiesEach)
	if err != nil {
		return err
	}
	pods := policyPods * len(p.namespaces)
	isolated, err := p.seen.Isolated.Wait(ctx, "", pods)
	if err != nil {
		return err
	}
	if isolated.After(last) {
		last = isolated
	}
	now, err := p.mark(ctx)
	if err != nil {
		return err
	}
	rate := perSecond(len(all), last.Sub(began))
	p.report.add(phasePolicies, "made at once: until all are in Northbound", "%.0f policies/s (%s)", rate,
		seconds(last.Sub(began))).
		beside("%d, made in %s; raw creations %.0f/s", len(all), seconds(created), limit).ratio(rate, limit)
	wrote, took := now.counts.Sub(before.counts), now.cost.sub(before.cost)
	p.report.disturbed("policies made at once", took)
	p.report.add(phasePolicies, "Northbound transactions, operations", "%d, %d", wrote.Transactions, wrote.Operations).
		beside("%d policies, which isolate %d pods in %d namespaces; %d refused", len(all), pods, len(p.namespaces),
			wrote.Refused)
	p.report.add(phasePolicies, "CPU time of the master", "%s", seconds(took.master)).beside("%s", took)
	// A pod takes at most its place in its node's group. Changes gather: a few transactions have all of them.
	operations, transactions := maxPolicyOperations*len(all)+pods, max(len(all)/10, 10)
	if wrote.Refused != 0 || wrote.Transactions > transactions || wrote.Operations > operations {
		p.report.violate("policies: %d transactions, %d refused, %d operations, want at most %d, none and %d",
			wrote.Transactions, wrote.Refused, wrote.Operations, transactions, operations)
	}
	return nil
}

// written waits until so many policies of each namespace are in Northbound, and returns when the last one was.
func (p *policies) written(ctx context.Context, each int) (last time.Time, err error) {
	for _, n := range p.namespaces {
		at, err := p.seen.Written.Wait(ctx, n, each)
		if err != nil {
			return last, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}
