package cleanup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// networks removes the finalizer that a master has added to networks which users define: without a master, a namespace
// that has one could not be deleted.
func (c Cluster) networks(ctx context.Context) (count int, err error) {
	var errs []error
	for _, k := range []kinds.Kind{kinds.UserNetwork(), kinds.ClusterUserNetwork()} {
		api := c.Clients.Dynamic.Resource(k.Resource)
		list, err := api.List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("listing %ss: %w", k.Kind, err))
			continue
		}
		for _, o := range list.Items {
			left := slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == cluster.Finalizer })
			if len(left) == len(o.GetFinalizers()) {
				continue
			}
			count++
			name := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
			errs = append(errs, c.change(fmt.Sprintf("%s %s: finalizer %s", k.Kind, name, cluster.Finalizer), func() error {
				body, err := json.Marshal(map[string]any{"metadata": map[string]any{
					"finalizers": left, "uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()}})
				if err != nil {
					return err
				}
				_, err = api.Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, body,
					metav1.PatchOptions{})
				return err
			}))
		}
	}
	return count, errors.Join(errs...)
}
