package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/test/scale/attach"
	"github.com/northbound-net/northbound/test/scale/load"
)

// policyInterval is the time between changes. ovn-northd before 26.09 needs so long for a group's first pod on a node
// that changes at the rate of the other phases would queue.
const policyInterval = time.Second

// policyChanges is how many policies come, and how many pods get a label.
const policyChanges = 50

// maxPolicyNodes limits the fake nodes beside the real one: the cluster has subnets for 256.
const maxPolicyNodes = 200

// The ports of policies of one pod, and of policies whose first pod comes.
const (
	singlePort = 20000
	joinPort   = 30000
)

// The labels that these policies select by.
const (
	singleLabel = "single"
	joinLabel   = "join"
)

// policyFlows measures a real node's flows with policies. The node has one pod of each namespace. The other pods are on
// fake nodes.
type policyFlows struct {
	Config
	bed        *attach.Bed
	report     *Report
	seen       *load.PolicyObserver
	watch      *attach.FlowWatch
	namespaces []string
}

func runPolicyFlows(ctx context.Context, c Config, r *Report, progress io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, phaseTimeout)
	defer cancel()
	bed, err := attach.New(ctx, "bench", c.Bin, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	p := &policyFlows{Config: c, bed: bed, report: r}
	if err := p.populate(ctx); err != nil {
		return err
	}
	if p.seen, err = load.ObservePolicies(bed.NBSocket()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.seen.Close()) }()
	there := load.NewTracker("the flows")
	if p.watch, err = bed.WatchPolicyFlows(there); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.watch.Close()) }()
	for _, step := range []func(context.Context, *load.Tracker) error{p.atOnce, p.single, p.join} {
		if err := step(ctx, there); err != nil {
			return err
		}
	}
	return nil
}

// populate makes pods, and attaches those of the node.
func (p *policyFlows) populate(ctx context.Context) (err error) {
	kube := p.bed.Kube()
	if p.namespaces, err = policyNamespaces(ctx, kube, p.PolicyNamespaces); err != nil {
		return err
	}
	p.Nodes = min(p.Nodes, maxPolicyNodes)
	if err := load.Nodes(ctx, kube, p.Nodes); err != nil {
		return err
	}
	own := make([]*corev1.Pod, len(p.namespaces))
	err = load.Parallel(ctx, len(p.namespaces)*policyPods, func(ctx context.Context, i int) error {
		namespace, number := i/policyPods, i%policyPods
		pod := policyPod(p.namespaces[namespace], number, load.NodeName(i%p.Nodes))
		if number == 0 {
			pod.Spec.NodeName = p.bed.NodeName()
			pod.Labels[singleLabel] = "yes"
		}
		made, err := kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("making a pod: %w", err)
		}
		if number == 0 {
			own[namespace] = made
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, n := range p.namespaces {
		if err := p.bed.WaitBound(ctx, n, policyPods); err != nil {
			return err
		}
	}
	return p.bed.Plug(ctx, own)
}

// portsOf is the names by which a tracker sees the flows of policies.
func portsOf(policies []load.Policy) (out []string) {
	for _, p := range policies {
		out = append(out, strconv.Itoa(p.Port))
	}
	return out
}

// atOnce measures many policies made at once.
func (p *policyFlows) atOnce(ctx context.Context, there *load.Tracker) error {
	if _, _, err := load.CreatePolicy(ctx, p.bed.Kube(), load.Policy{Namespace: lonePolicy,
		Port: firstPolicyPort - 1}); err != nil {
		return err
	}
	if _, err := p.seen.Written.Wait(ctx, lonePolicy, 1); err != nil {
		return err
	}
	all := policiesOf(p.namespaces, 0, policiesEach)
	began, err := load.CreatePolicies(ctx, p.bed.Kube(), all)
	if err != nil {
		return err
	}
	created := time.Since(began)
	flowing, err := waitFlows(ctx, there, portsOf(all))
	if err != nil {
		return err
	}
	p.report.add(phasePolicies, "made at once: until all are in the node's flows", "%.0f policies/s (%s)",
		perSecond(len(all), flowing.Sub(began)), seconds(flowing.Sub(began))).
		beside("%d, made in %s; %d pods of %d namespaces, %d of them on the node", len(all), seconds(created),
			policyPods*len(p.namespaces), len(p.namespaces), len(p.namespaces))
	return nil
}

// changed lists the namespaces in which something changes.
func (p *policyFlows) changed() []string { return p.namespaces[:min(policyChanges, len(p.namespaces))] }

// single measures policies that come, of one pod each.
func (p *policyFlows) single(ctx context.Context, there *load.Tracker) error {
	var all []load.Policy
	for i, n := range p.changed() {
		all = append(all, load.Policy{Namespace: n, Number: singlePort + i, Pods: map[string]string{singleLabel: "yes"},
			Clients: map[string]string{groupLabel: groups()[1]}, Port: singlePort + i})
	}
	samples, err := steady(ctx, len(all), policyInterval, func(i int) (sent, answered time.Time, err error) {
		return load.CreatePolicy(ctx, p.bed.Kube(), all[i])
	})
	if err != nil {
		return err
	}
	ports := portsOf(all)
	if _, err := waitFlows(ctx, there, ports); err != nil {
		return err
	}
	request, written, err := ways(samples, p.seen.Written, func(i int) load.Name {
		return load.Name{Namespace: all[i].Namespace, Name: load.PolicyName(all[i].Number)}
	})
	if err != nil {
		return err
	}
	_, whole, err := ways(samples, there, func(i int) load.Name { return load.Name{Name: ports[i]} })
	if err != nil {
		return err
	}
	p.report.add(phasePolicies, "a policy of one pod comes: request to the node's flows, p50 p95 p99", "%s",
		percentiles(whole)).
		beside("request to Northbound %s; the request itself %s; %d changes", percentiles(written), percentiles(request),
			len(all))
	return nil
}

// join measures pods that get the label of a policy that has selected none so far.
func (p *policyFlows) join(ctx context.Context, there *load.Tracker) error {
	var all []load.Policy
	for i, n := range p.changed() {
		all = append(all, load.Policy{Namespace: n, Number: joinPort + i, Pods: map[string]string{joinLabel: "yes"},
			Clients: map[string]string{groupLabel: groups()[1]}, Port: joinPort + i})
	}
	if _, err := load.CreatePolicies(ctx, p.bed.Kube(), all); err != nil {
		return err
	}
	for _, policy := range all {
		if _, err := p.seen.Written.WaitName(ctx, load.Name{Namespace: policy.Namespace,
			Name: load.PolicyName(policy.Number)}); err != nil {
			return err
		}
	}
	samples, err := steady(ctx, len(all), policyInterval, func(i int) (sent, answered time.Time, err error) {
		return p.label(ctx, all[i].Namespace)
	})
	if err != nil {
		return err
	}
	ports := portsOf(all)
	if _, err := waitFlows(ctx, there, ports); err != nil {
		return err
	}
	request, whole, err := ways(samples, there, func(i int) load.Name { return load.Name{Name: ports[i]} })
	if err != nil {
		return err
	}
	p.report.add(phasePolicies, "a pod gets a policy's label: request to the node's flows, p50 p95 p99", "%s",
		percentiles(whole)).
		beside("the request itself %s; %d changes, each the first pod of its policy", percentiles(request), len(all))
	return nil
}

// label labels the node's pod of a namespace.
func (p *policyFlows) label(ctx context.Context, namespace string) (sent, answered time.Time, err error) {
	patch, err := json.Marshal(object{"metadata": object{"labels": map[string]string{joinLabel: "yes"}}})
	if err != nil {
		return sent, answered, fmt.Errorf("making a patch: %w", err)
	}
	sent = time.Now()
	if _, err := p.bed.Kube().CoreV1().Pods(namespace).Patch(ctx, load.PodName(0), types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		return sent, sent, fmt.Errorf("labelling a pod: %w", err)
	}
	return sent, time.Now(), nil
}
