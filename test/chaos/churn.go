package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/test/scale/load"
)

const (
	namespace = "chaos"       // whose pods live in the cluster's own network
	red       = "chaos-red"   // whose pods live in a network of one switch
	blue      = "chaos-blue"  // whose pods live in a network of a switch for each node, with the same ranges
	green     = "chaos-green" // whose network comes and goes
	nodes     = 10
	stable    = 2                      // the first of them, which forward packets and are never replaced
	living    = 60                     // pods that the churn keeps
	pace      = 100 * time.Millisecond // between two changes
)

// homes are the namespaces in which pods and Services come and go.
func homes() []string { return []string{namespace, red, blue} }

// home is the namespace of the i-th pod, or Service.
func home(i int) string { return homes()[i%len(homes())] }

// churn makes and deletes pods, Services, Nodes and networks in turn, as its random numbers say.
type churn struct {
	kube    kubernetes.Interface
	objects dynamic.Interface
	random  *rand.Rand
	pods    []int // that exist
	next    int   // number of the next pod
	service int   // number of the next Service
	changes int   // that the API server accepted

	keepNodes atomic.Bool // no Node is replaced
	still     atomic.Bool // nothing changes
}

// run goes on until ctx ends. An API server that is away is no error: the change is lost, or was made unheard.
func (c *churn) run(ctx context.Context) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if c.still.Load() {
			continue
		}
		err := c.change(ctx)
		switch {
		case err == nil:
			c.changes++
		case !away(err):
			return err
		}
	}
}

// away tells whether an error says that the API server did not answer, or answered an earlier attempt.
func away(err error) bool {
	var timeout net.Error
	return apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsForbidden(err) || // while it starts
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		errors.Is(err, io.ErrUnexpectedEOF) || // in the middle of an answer
		utilnet.IsHTTP2ConnectionLost(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) || errors.As(err, &timeout)
}

func (c *churn) change(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	switch n := c.random.IntN(100); {
	case n < 6:
		c.service++
		_, err := load.CreateService(ctx, c.kube, home(c.service), c.service)
		return err
	case n < 10 && c.service > 0:
		i := 1 + c.random.IntN(c.service)
		return c.kube.CoreV1().Services(home(i)).Delete(ctx, load.ServiceName(i), metav1.DeleteOptions{})
	case n < 12 && !c.keepNodes.Load():
		return c.replaceNode(ctx, stable+c.random.IntN(nodes-stable))
	case n < 15:
		return c.changeNetwork(ctx)
	case len(c.pods) < living:
		return c.newPod(ctx)
	}
	i := c.random.IntN(len(c.pods))
	pod := c.pods[i]
	c.pods = slices.Delete(c.pods, i, i+1)
	now := int64(0)
	err := c.kube.CoreV1().Pods(home(pod)).Delete(ctx, load.PodName(pod), metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		c.pods = append(c.pods, pod) // it may still be there
	}
	return err
}

// newPod makes the next pod.
func (c *churn) newPod(ctx context.Context) error {
	c.next++
	c.pods = append(c.pods, c.next)
	_, _, err := load.CreatePod(ctx, c.kube, home(c.next), c.next, nodes)
	return err
}

// changeNetwork makes the network of a namespace without pods, or deletes it.
func (c *churn) changeNetwork(ctx context.Context) error {
	if c.random.IntN(2) == 0 {
		return load.DeleteNetwork(ctx, c.objects, green)
	}
	return load.Network(ctx, c.objects, green, []load.Topology{load.Layer2, load.Layer3}[c.random.IntN(2)])
}

// replaceNode deletes a Node whose pods still run, and makes one of the same name: a machine that is added again.
func (c *churn) replaceNode(ctx context.Context, i int) error {
	name := load.NodeName(i)
	err := c.kube.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting Node %s: %w", name, err)
	}
	return load.Node(ctx, c.kube, i)
}

// restore makes the Nodes anew that were deleted when the API server went away.
func (c *churn) restore(ctx context.Context) error {
	for i := range nodes {
		if err := load.Node(ctx, c.kube, i); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// waiting lists the pods without addresses in the networks of their namespaces.
func (c *churn) waiting(ctx context.Context) ([]string, error) {
	var out []string
	for _, ns := range homes() {
		list, err := c.kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing pods: %w", err)
		}
		want := `"default"`
		if ns != namespace {
			want = `"` + ns + "." + load.NetworkName + "/"
		}
		for _, p := range list.Items {
			if !strings.Contains(p.Annotations[load.PodNetworks], want) && p.Status.Phase != corev1.PodFailed {
				out = append(out, p.Name)
			}
		}
	}
	return out, nil
}
