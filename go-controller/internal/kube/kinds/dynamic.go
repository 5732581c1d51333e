package kinds

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// dynamicRow completes a Kind that client-go does not know. Its objects are read as JSON: fields that this version does
// not know must not get lost.
func dynamicRow[O cluster.Object](
	k Kind, decode func(*unstructured.Unstructured) (O, []cluster.Problem),
) Kind {
	of := func(c *client.Clients) dynamic.NamespaceableResourceInterface { return c.Dynamic.Resource(k.Resource) }
	k.New = func() Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k.Resource.GroupVersion().WithKind(string(k.Kind)))
		return u
	}
	k.NewList = func() runtime.Object { return &unstructured.UnstructuredList{} }
	k.ListWatch = func(c *client.Clients) *cache.ListWatch {
		return &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return of(c).List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return of(c).Watch(ctx, o)
			},
		}
	}
	k.Decode = func(obj runtime.Object) (cluster.Object, []cluster.Problem) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || u.GetKind() != string(k.Kind) {
			return nil, nil
		}
		return decode(u)
	}
	return k
}
