package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/scale/load"
)

const (
	keptServices = 20
	firstKept    = 90000 // the number of a Service whose rows must stay
)

// kindFails has the API server refuse to list and watch Services, know no such kind, fail, and break off its answers.
// Pods are served meanwhile, and all rows of Services stay. Changes of Services are known as soon as it tells again. An
// older list leaves nothing wrong behind.
func kindFails(ctx context.Context, w *world) (err error) {
	f, end, err := w.throughFront(ctx, "services")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	defer func() { err = errors.Join(err, w.deleteKept(ctx)) }()
	for i := range keptServices {
		if _, err := load.CreateService(ctx, w.Kube, namespace, firstKept+i); err != nil {
			return err
		}
	}
	if err := w.eventually(ctx, "the Services have rows", w.haveRows(0)); err != nil {
		return err
	}
	for i, how := range []failure{http.StatusForbidden, http.StatusNotFound, http.StatusInternalServerError, cut} {
		if err := w.failsMeanwhile(ctx, f, how, i); err != nil {
			return fmt.Errorf("failure %d of lists and watches: %w", how, err)
		}
	}
	if err := w.seesOlder(ctx, f); err != nil {
		return fmt.Errorf("an older list: %w", err)
	}
	return w.startRefused(ctx, f)
}

// throughFront has another master reach the API server through a front, until the caller calls end.
func (w *world) throughFront(ctx context.Context, resource string) (f *front, end func() error, err error) {
	if f, err = newFront(w.Kubeconfig(), resource); err != nil {
		return nil, nil, err
	}
	end = func() error {
		w.flags = nil
		err := masterKilled(ctx, w)
		f.Close()
		return err
	}
	file, err := f.kubeconfig(w.Dir)
	if err == nil {
		w.flags = []string{"--kubeconfig", file}
		err = masterKilled(ctx, w)
	}
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	_, err = w.master.WaitReady(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return f, end, nil
}

// failsMeanwhile deletes the i-th Service while the master cannot see it.
func (w *world) failsMeanwhile(ctx context.Context, f *front, how failure, i int) error {
	f.fail(how)
	if err := w.eventually(ctx, "lists and watches have failed", f.failedOften); err != nil {
		return err
	}
	if how == http.StatusForbidden || how == http.StatusNotFound {
		if err := w.logged(ctx, w.master.Process, "the API server refuses a kind", "kind="+f.resource); err != nil {
			return err
		}
	}
	if err := w.deleteService(ctx, i); err != nil {
		return err
	}
	if err := w.eventually(ctx, "a pod is served though a kind fails", w.newPodMeanwhile()); err != nil {
		return err
	}
	stay := i
	if how == cut {
		stay = i + 1 // a watch may tell of the deletion before it breaks off
	}
	if missing, err := w.haveRows(stay)(ctx); missing != "" || err != nil {
		return errors.Join(err, fmt.Errorf("lists of Services fail, and their rows are gone: %s", missing))
	}
	f.fail(whole)
	return w.eventually(ctx, "the rows of the deleted Service are gone", func(ctx context.Context) (string, error) {
		out, err := w.serviceRows(ctx)
		if err != nil || !strings.Contains(out, keptName(i)) {
			return "", err
		}
		return keptName(i) + " has rows", nil
	})
}

// startRefused starts a master while the API server refuses a kind. The master says so, is not ready, and leaves all
// rows alone. It works as soon as it may, without another start.
func (w *world) startRefused(ctx context.Context, f *front) error {
	f.fail(http.StatusForbidden)
	if err := masterKilled(ctx, w); err != nil {
		return err
	}
	if err := w.logged(ctx, w.master.Process, "the API server refuses a kind", "kind="+f.resource); err != nil {
		return err
	}
	if err := w.eventually(ctx, "lists and watches have failed", f.failedOften); err != nil {
		return err
	}
	err := w.eventually(ctx, "/readyz names the kind that is refused", func(ctx context.Context) (string, error) {
		code, text, err := w.master.Readyz(ctx)
		if err == nil && (code == http.StatusOK || !strings.Contains(text, f.resource)) {
			err = fmt.Errorf("%d %s", code, text)
		}
		return "", err
	})
	if err != nil {
		return err
	}
	if missing, err := w.haveRows(keptServices / 2)(ctx); missing != "" || err != nil {
		return errors.Join(err, fmt.Errorf("a master that may not list Services removed their rows: %s", missing))
	}
	f.fail(whole)
	_, err = w.master.WaitReady(ctx)
	return err
}

func keptName(i int) string { return load.ServiceName(firstKept + i) }

func (w *world) serviceRows(ctx context.Context) (string, error) {
	return w.nbctl(ctx, "--bare", "--columns=external_ids", "list", "load_balancer")
}

// haveRows names the Services from the i-th on that have no rows.
func (w *world) haveRows(i int) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		out, err := w.serviceRows(ctx)
		var missing []string
		for n := i; n < keptServices; n++ {
			if !strings.Contains(out, keptName(n)) {
				missing = append(missing, keptName(n))
			}
		}
		return strings.Join(missing, " "), err
	}
}

func (w *world) deleteService(ctx context.Context, i int) error {
	err := w.Kube.CoreV1().Services(namespace).Delete(ctx, keptName(i), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting a Service: %w", err)
	}
	return nil
}

// deleteKept removes the Services and their slices.
func (w *world) deleteKept(ctx context.Context) error {
	var errs []error
	for i := range keptServices + 1 { // one came later
		errs = append(errs, w.deleteService(ctx, i))
		err := w.Kube.DiscoveryV1().EndpointSlices(namespace).Delete(ctx, keptName(i), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
