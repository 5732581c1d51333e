package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// The agent renews its Lease every renewInterval. An attempt may take renewTimeout, and after a refusal the agent waits
// refusedPause. The master looks at the kubelet's Lease when the agent's is older than leaseDuration. By then a kubelet
// that runs has renewed its own, which it does every 10 s.
const (
	renewInterval = 2 * time.Second
	renewTimeout  = 3 * time.Second
	refusedPause  = 30 * time.Second
	leaseDuration = 15 * time.Second
)

// leaseLabel and leaseValue mark the Leases of gateways among those of the namespace.
const (
	leaseLabel = "k8s.ovn.org/lease"
	leaseValue = "gateway"
)

// Namespace has the Leases of gateways beside those of the kubelets.
const Namespace = corev1.NamespaceNodeLease

// Selector is the label selector of the Leases of gateways.
func Selector() string { return leaseLabel + "=" + leaseValue }

// nameOf is the name of a gateway node's Lease.
func nameOf(node string) string { return "ovn-gateway." + node }

// Keeper renews the Lease of one gateway node.
type Keeper struct {
	leases       coordinationv1client.LeaseInterface
	node         string
	fieldManager string
	owner        func() (uid string, ok bool)
	log          *slog.Logger
}

// NewKeeper is the Keeper of a node's Lease. owner tells the UID of the Node. The Node owns the Lease, so that both are
// deleted together.
func NewKeeper(
	c *client.Clients, node, fieldManager string, owner func() (uid string, ok bool), log *slog.Logger,
) *Keeper {
	leases := c.GatewayLeases().Leases(Namespace)
	return &Keeper{leases: leases, node: node, fieldManager: fieldManager, owner: owner, log: log}
}

// Run renews the Lease until ctx ends, at times when alive is true.
func (k *Keeper) Run(ctx context.Context, alive func() bool) {
	failure := "" // as it was logged
	for next := renewInterval; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		next = renewInterval
		if !alive() {
			continue
		}
		err := k.renew(ctx, time.Now())
		switch {
		case ctx.Err() != nil:
		case err == nil && failure != "":
			k.log.Info("gateway's lease is renewed again", "node", k.node)
			failure = ""
		case err != nil && failure != err.Error():
			failure = err.Error()
			k.log.Warn("the master notices later if this machine dies", "node", k.node, "error", err)
		}
		if apierrors.IsForbidden(err) {
			next = refusedPause
		}
	}
}

// renew writes the Lease once, and makes it if there is none.
func (k *Keeper) renew(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	uid, ok := k.owner()
	if !ok {
		return fmt.Errorf("there is no Node %q", k.node)
	}
	seconds, renewed := int32(leaseDuration/time.Second), metav1.NewMicroTime(now)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: nameOf(k.node), Labels: map[string]string{leaseLabel: leaseValue},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: k.node, UID: types.UID(uid)}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &k.node, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
	patch, err := json.Marshal(lease)
	if err != nil {
		return fmt.Errorf("building the lease %s: %w", lease.Name, err)
	}
	options := metav1.PatchOptions{FieldManager: k.fieldManager}
	if _, err = k.leases.Patch(ctx, lease.Name, types.MergePatchType, patch, options); apierrors.IsNotFound(err) {
		_, err = k.leases.Create(ctx, lease, metav1.CreateOptions{FieldManager: k.fieldManager})
	}
	if err != nil {
		return fmt.Errorf("renewing the lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	return nil
}
