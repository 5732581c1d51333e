package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/scale/load"
)

// samplesPerKind is how often a change of each kind is made at each size. changePause is the time between two: without
// it, changes would wait for the pace of transactions.
const (
	samplesPerKind = 40
	changePause    = 80 * time.Millisecond
)

// podOperations is what a pod with addresses of both families takes in a namespace that has pods: the port's insert,
// its place on the switch, and its addresses in the namespace's two sets.
const podOperations = 4

// kind is a kind of change.
type kind struct {
	name   string
	writes bool // whether rows change
	do     func(s *scale, ctx context.Context, i int) error
}

// effect is what the changes of one kind led to.
type effect struct {
	kind       string
	took       time.Duration // from the request to the database's log, p50; 0 when nothing is written
	operations float64       // of each change
	cpu        time.Duration // of each change
}

// kinds lists the kinds of changes, in the order in which they are made. None of them frees an address: the master
// would note that once more with another change, or after a restart.
func kinds() []kind {
	return []kind{
		{"a pod comes", true, func(s *scale, ctx context.Context, _ int) error {
			s.came = append(s.came, s.grown)
			return s.addPod(ctx)
		}},
		{"a pod's label changes", false, (*scale).labelPod},
		{"a namespace comes", true, func(s *scale, ctx context.Context, i int) error {
			return load.Namespace(ctx, s.rig.Kube, fmt.Sprintf("change-%d", i))
		}},
		{"a namespace's label changes", false, (*scale).labelNamespace},
		{"a service comes, without endpoints", true, func(s *scale, ctx context.Context, i int) error {
			return load.CreateDualService(ctx, s.rig.Kube, phaseScale, s.Services+i)
		}},
		{"its endpoints come, 10 of IPv4", true, func(s *scale, ctx context.Context, i int) error {
			return load.CreateBackends(ctx, s.rig.Kube, phaseScale, s.Services+i, true)
		}},
		{"one endpoint goes", true, func(s *scale, ctx context.Context, i int) error {
			_, _, err := load.SetBackends(ctx, s.rig.Kube, phaseScale, s.Services+i, load.Backends-1)
			return err
		}},
		{"a service goes", true, func(s *scale, ctx context.Context, i int) error {
			if err := s.rig.Kube.CoreV1().Services(phaseScale).Delete(ctx, load.ServiceName(s.Services+i),
				metav1.DeleteOptions{}); err != nil {
				return fmt.Errorf("deleting a service: %w", err)
			}
			return nil
		}},
		{"a policy comes", true, func(s *scale, ctx context.Context, i int) error {
			_, _, err := load.CreatePolicy(ctx, s.rig.Kube, policy(isolatingPolicy+1+i, 0))
			return err
		}},
		{"a policy's port changes", true, func(s *scale, ctx context.Context, i int) error {
			return load.UpdatePolicy(ctx, s.rig.Kube, policy(isolatingPolicy+1+i, 1))
		}},
		{"a policy goes", true, func(s *scale, ctx context.Context, i int) error {
			return load.DeletePolicy(ctx, s.rig.Kube, policyNamespace, isolatingPolicy+1+i)
		}},
		{"a node comes", true, func(s *scale, ctx context.Context, i int) error {
			return load.Node(ctx, s.rig.Kube, s.Nodes+i)
		}},
		{"a namespace for a primary network comes", true, func(s *scale, ctx context.Context, i int) error {
			return load.TenantNamespace(ctx, s.rig.Kube, scaleTenant(i))
		}},
		{"its primary network comes", true, func(s *scale, ctx context.Context, i int) error {
			return load.Network(ctx, s.rig.Objects, scaleTenant(i), load.Layer2)
		}},
		{"the network's first pod comes", true, func(s *scale, ctx context.Context, i int) error {
			_, _, err := load.CreatePod(ctx, s.rig.Kube, scaleTenant(i), i, s.Nodes)
			return err
		}},
	}
}

// scaleTenant is the namespace of the i-th network that comes as a change.
func scaleTenant(i int) string { return fmt.Sprintf("tenant-%d", i) }

// podGoes is the kind of change that frees addresses.
func podGoes() kind {
	return kind{"a pod goes", true, func(s *scale, ctx context.Context, i int) error {
		pods, gone := s.rig.Kube.CoreV1().Pods(namespaceOf(0)), load.PodName(s.came[i])
		if err := pods.Delete(ctx, gone, *metav1.NewDeleteOptions(0)); err != nil {
			return fmt.Errorf("deleting a pod: %w", err)
		}
		return nil
	}}
}

// policyNamespace has podsWithPolicies pods, which one policy isolates from the start.
const (
	policyNamespace  = "policies"
	podsWithPolicies = 10
	isolatingPolicy  = 0
)

// policy is one for all pods of policyNamespace, which opens a port to them. Each number has ports of its own, for
// version 0 and 1. The changes have the numbers after isolatingPolicy.
func policy(number, version int) load.Policy {
	return load.Policy{Namespace: policyNamespace, Number: number, Port: 1000 + 2*number + version}
}

// prepareScalePolicies makes the pods that policies select, and the policy that isolates them.
func (s *scale) prepareScalePolicies(ctx context.Context) error {
	if err := load.Namespace(ctx, s.rig.Kube, policyNamespace); err != nil {
		return err
	}
	if _, err := load.CreatePods(ctx, s.rig.Kube, policyNamespace, podsWithPolicies, s.Nodes); err != nil {
		return err
	}
	_, _, err := load.CreatePolicy(ctx, s.rig.Kube, policy(isolatingPolicy, 0))
	return err
}

// effects makes the changes of each kind.
func (s *scale) effects(ctx context.Context) (out []effect, err error) {
	for _, k := range kinds() {
		e, err := s.effect(ctx, k)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// effect makes the changes of one kind. A pod comes last: everything that the changes led to is written before it.
func (s *scale) effect(ctx context.Context, k kind) (effect, error) {
	before, err := s.mark(ctx)
	if err != nil {
		return effect{}, err
	}
	var took []time.Duration
	for range samplesPerKind {
		d, err := s.change(ctx, k)
		if err != nil {
			return effect{}, err
		}
		took = append(took, d)
	}
	after, err := spent(s.rig, s.master)
	if err != nil {
		return effect{}, err
	}
	if err := s.barrier(ctx); err != nil {
		return effect{}, err
	}
	counts, err := s.rig.Counts(ctx, s.master)
	if err != nil {
		return effect{}, err
	}
	e := effect{kind: k.name, cpu: after.sub(before.cost).master / samplesPerKind,
		operations: float64(counts.Sub(before.counts).Operations-podOperations) / samplesPerKind}
	if k.writes {
		e.took = percentile(took, 50)
	}
	return e, nil
}

// change makes one change, and waits until it is in the database's log, if it is to be.
func (s *scale) change(ctx context.Context, k kind) (time.Duration, error) {
	before, err := s.rig.NB.Log.Records()
	if err != nil {
		return 0, err
	}
	i := s.samples[k.name]
	s.samples[k.name]++
	sent := time.Now()
	if err := k.do(s, ctx, i); err != nil {
		return 0, err
	}
	for now := before; k.writes && now == before; {
		if err := pause(ctx, logPoll); err != nil {
			return 0, fmt.Errorf("waiting for a transaction: %w", err)
		}
		if now, err = s.rig.NB.Log.Records(); err != nil {
			return 0, err
		}
	}
	took := time.Since(sent)
	return took, pause(ctx, changePause)
}

// logPoll is how often the database's log is looked at.
const logPoll = 200 * time.Microsecond

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// addPod makes the next pod, in the first namespace.
func (s *scale) addPod(ctx context.Context) error {
	_, _, err := load.CreatePod(ctx, s.rig.Kube, namespaceOf(0), s.grown, s.Nodes)
	s.grown++
	return err
}

// barrier makes a pod and waits until it has its network.
func (s *scale) barrier(ctx context.Context) error {
	pod := load.Name{Namespace: namespaceOf(0), Name: load.PodName(s.grown)}
	if err := s.addPod(ctx); err != nil {
		return err
	}
	if _, err := s.observer.Annotated.WaitName(ctx, pod); err != nil {
		return err
	}
	_, err := s.observer.Ported.WaitName(ctx, pod)
	return err
}

// changedLabel is the label that the changes of labels set.
const changedLabel = "changed"

// labelPod labels a pod of the first namespace. It is no PATCH: those of the master are counted.
func (s *scale) labelPod(ctx context.Context, i int) error {
	pods := s.rig.Kube.CoreV1().Pods(namespaceOf(0))
	pod, err := pods.Get(ctx, load.PodName(i%podsPerNamespace), metav1.GetOptions{})
	if err == nil {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, changedLabel, strconv.Itoa(i))
		_, err = pods.Update(ctx, pod, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("labelling a pod: %w", err)
	}
	return nil
}

func (s *scale) labelNamespace(ctx context.Context, i int) error {
	ns, err := s.rig.Kube.CoreV1().Namespaces().Get(ctx, namespaceOf(0), metav1.GetOptions{})
	if err == nil {
		metav1.SetMetaDataLabel(&ns.ObjectMeta, changedLabel, strconv.Itoa(i))
		_, err = s.rig.Kube.CoreV1().Namespaces().Update(ctx, ns, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("labelling a namespace: %w", err)
	}
	return nil
}

// checkFlat checks that no kind of change takes more operations in a larger cluster.
func (s *scale) checkFlat() {
	for _, size := range s.out.Sizes {
		for i, e := range size.changes {
			if least := s.out.Sizes[0].changes[i].operations; e.operations != least {
				s.report.violate("%s: %.2f operations with %d pods, want %.2f as with %d", e.kind, e.operations, size.pods, least,
					s.out.Sizes[0].pods)
			}
		}
	}
}
