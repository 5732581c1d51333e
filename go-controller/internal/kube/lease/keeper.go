package kubeio

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// A gateway node's agent tells that the machine lives by a Lease beside the
// kubelet's: it is renewed every leaseInterval, each attempt ends after
// leaseTimeout, and the next one comes after leaseRefused when the agent may
// not. After leaseDuration without a new one the master asks what the kubelet
// says; by then a kubelet that lives has renewed its own, which it does every 10 s.
const (
	leaseInterval = 2 * time.Second
	leaseTimeout  = 3 * time.Second
	leaseRefused  = 30 * time.Second
	leaseDuration = 15 * time.Second
)

// leaseLabel and leaseValue mark gateways' Leases among those of the namespace.
const (
	leaseLabel = "k8s.ovn.org/lease"
	leaseValue = "gateway"
)

// gatewayLease is the name of a gateway node's Lease, in the namespace
// kube-node-lease.
func gatewayLease(node string) string { return "ovn-gateway." + node }

// leaseClient is a client for Leases alone. It speaks HTTP/1.1, so that an
// attempt that gets no answer takes its connection along: HTTP/2 would try the
// same dead one for another 45 seconds.
func leaseClient(rc *rest.Config) (coordinationv1client.LeasesGetter, error) {
	c := rest.CopyConfig(rc)
	c.NextProtos = []string{"http/1.1"}
	return coordinationv1client.NewForConfig(c)
}

// KeepLease renews this node's Lease as a gateway, as long as alive says so,
// until ctx ends. Its Node owns the Lease, so that it goes with it.
func (l *Local) KeepLease(ctx context.Context, alive func() bool) {
	told := ""
	for next := leaseInterval; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		next = leaseInterval
		if !alive() {
			continue
		}
		err := l.renewLease(ctx, time.Now())
		switch {
		case ctx.Err() != nil:
		case err == nil && told != "":
			l.log.Info("gateway's lease is renewed again", "node", l.node)
			told = ""
		case err != nil && told != err.Error():
			told = err.Error()
			l.log.Warn("the master notices later if this machine dies", "node", l.node, "error", err)
		}
		if apierrors.IsForbidden(err) {
			next = leaseRefused
		}
	}
}

// renewLease writes the Lease once, and makes it if there is none.
func (l *Local) renewLease(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	node, ok := l.Node()
	if !ok {
		return fmt.Errorf("there is no Node %q", l.node)
	}
	seconds, renewed := int32(leaseDuration/time.Second), metav1.NewMicroTime(now)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: corev1.NamespaceNodeLease, Name: gatewayLease(l.node), Labels: map[string]string{leaseLabel: leaseValue},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: l.node, UID: types.UID(node.UID)}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &l.node, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
	patch, err := json.Marshal(lease)
	if err != nil {
		return fmt.Errorf("building the lease %s: %w", lease.Name, err)
	}
	leases := l.leases.Leases(lease.Namespace)
	if _, err = leases.Patch(ctx, lease.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "ovnkube-node"}); apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{FieldManager: "ovnkube-node"})
	}
	if err != nil {
		return fmt.Errorf("renewing the lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	return nil
}
