package settings

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// The ConfigMap with the settings.
const (
	Namespace = "kube-system"
	Name      = "northbound-settings"
)

// Where names the ConfigMap in errors and logs.
const Where = "ConfigMap " + Namespace + "/" + Name

// ErrNotPublished is the error that no master has published settings yet.
var ErrNotPublished = errors.New(Where + " does not exist: no master has published the settings yet")

// Read returns the published settings. The error wraps ErrNotPublished if there are none yet.
func Read(ctx context.Context, kube kubernetes.Interface) (config.Settings, error) {
	have, err := kube.CoreV1().ConfigMaps(Namespace).Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, ErrNotPublished
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", Where, err)
	}
	return have.Data, nil
}

// Publish makes the ConfigMap hold the settings, and writes nothing if it already does. changed lists the flags whose
// published values were different; it is empty when nothing had been published. A ConfigMap that changed at the same
// time is an error: try again.
func Publish(ctx context.Context, kube kubernetes.Interface, want config.Settings) (changed []string, err error) {
	objects := kube.CoreV1().ConfigMaps(Namespace)
	have, err := objects.Get(ctx, Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = objects.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: Name}, Data: want},
			metav1.CreateOptions{})
	case err == nil:
		if changed = differing(have.Data, want); len(changed) > 0 {
			have.Data = want
			_, err = objects.Update(ctx, have, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", Where, err)
	}
	return changed, nil
}

// differing lists the settings that have different values, sorted.
func differing(a, b config.Settings) (out []string) {
	all := maps.Clone(a)
	if all == nil {
		all = config.Settings{}
	}
	maps.Copy(all, b)
	for flag := range all {
		x, inA := a[flag]
		y, inB := b[flag]
		if inA != inB || x != y {
			out = append(out, flag)
		}
	}
	slices.Sort(out)
	return out
}
