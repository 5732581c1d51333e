package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	leaseNamespace = "kube-system"
	leaseName      = "northbound-master"
	leaseTime      = 4 * time.Second
	// skew is how far the other master's clock is off. The clock of a machine cannot be changed for one process: Go's
	// programs without C do not ask a library, and namespaces have no wall clock. So the test writes what such a master
	// would.
	skew = 5 * time.Hour
)

// clockSkewed has a leader whose clock is off renew the Lease, and then end. Another master must not lead before, and
// must afterwards, as soon as the Lease has expired by its own clock.
func clockSkewed(ctx context.Context, w *world) (err error) {
	if err := w.master.Kill(); err != nil {
		return err
	}
	w.flags = []string{"--leader-elect=true", "--leader-elect-namespace", leaseNamespace, "--leader-elect-lease",
		leaseTime.String()}
	defer func() {
		w.flags = nil
		gone := w.Kube.CoordinationV1().Leases(leaseNamespace).Delete(ctx, leaseName, metav1.DeleteOptions{})
		err = errors.Join(err, masterKilled(ctx, w), gone)
	}()
	for _, off := range []time.Duration{skew, -skew} {
		if err := w.otherLeads(ctx, off); err != nil {
			return fmt.Errorf("a leader whose clock is off by %s: %w", off, err)
		}
	}
	return nil
}

// otherLeads renews the Lease for longer than it lasts, while a master stands by, and then leaves it to that.
func (w *world) otherLeads(ctx context.Context, off time.Duration) error {
	if err := w.renewLease(ctx, off); err != nil {
		return err
	}
	if err := w.startMaster(ctx); err != nil {
		return err
	}
	renewed := time.Now()
	for began := time.Now(); time.Since(began) < 2*leaseTime; renewed = time.Now() {
		if err := errors.Join(w.pause(ctx, leaseTime/4), w.renewLease(ctx, off)); err != nil {
			return err
		}
	}
	if led, err := w.master.Logged("msg=leading"); led || err != nil {
		return errors.Join(err, fmt.Errorf("a master leads although another renews the Lease: %s", w.master.Tail()))
	}
	err := w.eventually(ctx, "the master leads when the Lease has expired", func(context.Context) (string, error) {
		if led, err := w.master.Logged("msg=leading"); !led || err != nil {
			return "not yet", err
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	took := time.Since(renewed)
	w.note("a leader's clock was off by %s: the next one led %.1f s after its last renewal of a Lease of %s", off,
		took.Seconds(), leaseTime)
	if took < leaseTime*9/10 {
		return fmt.Errorf("a master leads %s after another's renewal of a Lease of %s", took, leaseTime)
	}
	err = w.eventually(ctx, "the master is ready", func(ctx context.Context) (string, error) {
		code, text, err := w.master.Readyz(ctx)
		if err != nil || code != http.StatusOK {
			return strings.TrimSpace(text) + "not ready", err
		}
		return "", nil
	})
	return errors.Join(err, w.master.Kill())
}

// renewLease does what a leader with a wrong clock does.
func (w *world) renewLease(ctx context.Context, off time.Duration) error {
	leases := w.Kube.CoordinationV1().Leases(leaseNamespace)
	now := metav1.NowMicro().Add(off)
	spec := coordinationv1.LeaseSpec{HolderIdentity: ptr.To("other"), RenewTime: &metav1.MicroTime{Time: now},
		AcquireTime: &metav1.MicroTime{Time: now}, LeaseDurationSeconds: ptr.To(int32(leaseTime / time.Second))}
	have, err := leases.Get(ctx, leaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		meta := metav1.ObjectMeta{Namespace: leaseNamespace, Name: leaseName}
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{})
	} else if err == nil {
		have.Spec = spec
		_, err = leases.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renewing the Lease for another master: %w", err)
	}
	return nil
}
