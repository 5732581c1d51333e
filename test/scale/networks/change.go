package networks

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/northbound-net/northbound/test/scale/load"
)

// How often the API server is asked for something that many, or one, may get.
const (
	pollAll = 200 * time.Millisecond
	pollOne = 5 * time.Millisecond
)

// grow makes networks until there are n, all at once.
func (r *run) grow(ctx context.Context, n int, out *Result) error {
	before, err := r.settle(ctx)
	if err != nil {
		return err
	}
	records, err := r.rig.NB.Log.Records()
	if err != nil {
		return err
	}
	from, began := r.networks, time.Now()
	err = load.Parallel(ctx, n-from, func(ctx context.Context, i int) error { return r.makeNetwork(ctx, from+i) })
	if err != nil {
		return err
	}
	out.Made = time.Since(began)
	r.networks = n
	if err := r.waitForPods(ctx, "", pollAll); err != nil {
		return err
	}
	out.Granted = time.Since(began)
	if err := r.waitForPorts(ctx); err != nil {
		return err
	}
	at, err := r.sync(ctx, r.computed)
	if err != nil {
		return err
	}
	out.Computed = at.Sub(began)
	pods := map[string][]int{}
	for i := from; i < n; i++ {
		pods[tenant(i)] = []int{0, 1}
	}
	plugged := time.Now()
	if err := r.plug(ctx, pods); err != nil {
		return err
	}
	if at, err = r.sync(ctx, r.installed); err != nil {
		return err
	}
	out.Installed = at.Sub(plugged)
	after, err := r.settle(ctx)
	if err != nil {
		return err
	}
	now, err := r.rig.NB.Log.Records()
	out.Grown, out.Transactions = n-from, now-records-2 // without those of nb_cfg
	used := after.sub(before)
	out.MasterCPU, out.NorthdCPU, out.ControllerCPU = used.master, used.northd, used.controller
	return err
}

// podComes makes a pod on the first node, in a network that is there.
func (r *run) podComes(ctx context.Context) (Change, error) {
	r.nextPod++
	namespace, pod := tenant(r.nextPod%r.networks), nodes*r.nextPod
	return r.change(ctx, namespace, pod, func(ctx context.Context) error {
		return r.makePods(ctx, namespace, pod, pod+1)
	})
}

// networkComes makes a network, with a pod on the first node.
func (r *run) networkComes(ctx context.Context) (Change, error) {
	r.nextPod++
	r.later++
	namespace := fmt.Sprintf("later-%04d", r.later)
	return r.change(ctx, namespace, 0, func(ctx context.Context) error {
		return errors.Join(load.Tenant(ctx, r.rig.Kube, r.rig.Objects, namespace, load.Layer2),
			r.makePods(ctx, namespace, 0, 1))
	})
}

// change makes a pod, and measures until its addresses are known, the Southbound database has its ports, and the
// chassis has their flows.
func (r *run) change(ctx context.Context, namespace string, pod int, do func(context.Context) error) (c Change,
	err error) {
	before, err := r.settle(ctx)
	if err != nil {
		return c, err
	}
	began := time.Now()
	if err := do(ctx); err != nil {
		return c, err
	}
	if err := r.waitForPods(ctx, namespace, pollOne); err != nil {
		return c, err
	}
	c.Granted = time.Since(began)
	if err := r.waitForPorts(ctx); err != nil {
		return c, err
	}
	at, err := r.sync(ctx, r.computed)
	if err != nil {
		return c, err
	}
	c.Computed = at.Sub(began)
	if err := r.plug(ctx, map[string][]int{namespace: {pod}}); err != nil {
		return c, err
	}
	if at, err = r.sync(ctx, r.installed); err != nil {
		return c, err
	}
	c.Installed = at.Sub(began)
	after, err := r.settle(ctx)
	used := after.sub(before)
	c.NorthdCPU, c.ControllerCPU = used.northd, used.controller
	return c, err
}

// epochs is the number of transactions in which a master that starts raises the leader epoch.
const epochs = 1

// restart ends the master and starts it again.
func (r *run) restart(ctx context.Context) (out Restart, err error) {
	if err := r.master.Stop(); err != nil {
		return out, err
	}
	before, err := r.rig.Counts(ctx, nil)
	if err != nil {
		return out, err
	}
	began := time.Now()
	if err := r.startMaster(ctx); err != nil {
		return out, err
	}
	out.Ready = time.Since(began)
	if _, err := r.settle(ctx); err != nil {
		return out, err
	}
	after, err := r.rig.Counts(ctx, r.master)
	out.Transactions, out.Patches = after.Logged-before.Logged-epochs, after.Patches
	return out, err
}

// batch is how many networks exist at once, beside the others, when networks come and go.
const batch = 50

// churn makes and deletes networks, each with a pod on the first node. It counts after the first batch and after the
// last.
func (r *run) churn(ctx context.Context) (out Churned, err error) {
	if err := load.Parallel(ctx, batch, func(ctx context.Context, i int) error {
		return load.Tenant(ctx, r.rig.Kube, r.rig.Objects, churned(i), load.Layer2)
	}); err != nil {
		return out, err
	}
	var began time.Time
	for made := 0; made < r.Churn; made += batch {
		if err := r.comeAndGo(ctx, made); err != nil {
			return out, fmt.Errorf("after %d networks: %w", made, err)
		}
		if made == 0 {
			if out.Before, err = r.left(ctx); err != nil {
				return out, err
			}
			began = time.Now()
		}
		out.Networks = made + batch
	}
	out.Each = time.Since(began) / time.Duration(out.Networks-batch)
	out.After, err = r.left(ctx)
	return out, err
}

func churned(i int) string { return fmt.Sprintf("churned-%04d", i) }

// comeAndGo makes a batch of networks, with a pod in each, and deletes both.
func (r *run) comeAndGo(ctx context.Context, made int) error {
	each := func(do func(ctx context.Context, namespace string) error) error {
		return load.Parallel(ctx, batch, func(ctx context.Context, i int) error { return do(ctx, churned(i)) })
	}
	topology := []load.Topology{load.Layer2, load.Layer3}[made/batch%2]
	if made > 0 { // those of the first batch are there
		if err := each(func(ctx context.Context, namespace string) error {
			return load.Network(ctx, r.rig.Objects, namespace, topology)
		}); err != nil {
			return err
		}
	}
	pod := nodes * (made / batch)
	if err := each(func(ctx context.Context, ns string) error { return r.makePods(ctx, ns, pod, pod+1) }); err != nil {
		return err
	}
	if err := r.waitForPods(ctx, "", pollAll); err != nil {
		return err
	}
	now := int64(0)
	if err := each(func(ctx context.Context, ns string) error {
		return errors.Join(
			r.rig.Kube.CoreV1().Pods(ns).Delete(ctx, load.PodName(pod), metav1.DeleteOptions{GracePeriodSeconds: &now}),
			load.DeleteNetwork(ctx, r.rig.Objects, ns))
	}); err != nil {
		return err
	}
	return r.waitUntilGone(ctx)
}

// waitUntilGone waits until no network is there that is to go.
func (r *run) waitUntilGone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, pollAll, true, func(ctx context.Context) (bool, error) {
		for i := range batch {
			if there, err := load.HasNetwork(ctx, r.rig.Objects, churned(i)); err != nil || there {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until networks are gone: %w: %s", err, r.master.Tail())
	}
	return nil
}

// left is what there is, and the process of ovn-northd.
func (r *run) left(ctx context.Context) (out Left, err error) {
	if _, err := r.sync(ctx, r.installed); err != nil {
		return out, err
	}
	c, err := r.count(ctx)
	if err != nil {
		return out, err
	}
	m, err := r.memory()
	return Left{c.rows, c.logicalFlows, c.datapaths, c.flows, r.northd.PID(), m}, err
}
