package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// ClusterNetworkPolicy is the row of ClusterNetworkPolicies, which an API server has once its administrator installs
// the kind. The objects are read as JSON: fields that this version does not know must not get lost.
func ClusterNetworkPolicy() Kind {
	version := schema.GroupVersion(v1alpha2.GroupVersion)
	resource := version.WithResource("clusternetworkpolicies")
	of := func(c *client.Clients) dynamic.NamespaceableResourceInterface { return c.Dynamic.Resource(resource) }
	return Kind{
		Kind: cluster.KindClusterNetworkPolicy, Resource: resource, ValidName: subdomain, Optional: true,
		WatchedBy: []Daemon{Master}, JudgedBy: []Daemon{Master},
		New: func() Object {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(version.WithKind(string(cluster.KindClusterNetworkPolicy)))
			return u
		},
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
		ListWatch: func(c *client.Clients) *cache.ListWatch {
			return &cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					return of(c).List(ctx, o)
				},
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					return of(c).Watch(ctx, o)
				},
			}
		},
		Decode: func(obj runtime.Object) (cluster.Object, []cluster.Problem) {
			if u, ok := obj.(*unstructured.Unstructured); ok {
				object := readClusterPolicy(u)
				out, problems := decodeClusterPolicy(object)
				out.Observed = object.observed
				out.Problems = slices.DeleteFunc(slices.Clone(problems), func(p cluster.Problem) bool {
					return p.Reason == reasonLogging // the rules are in effect all the same
				})
				return out, problems
			}
			return nil, nil
		},
	}
}

// clusterPolicyObject is an object, with what this version does not understand.
type clusterPolicyObject struct {
	v1alpha2.ClusterNetworkPolicy
	observed cluster.Observed
	unknown  []string // paths of fields, such as spec.ingress[0].schedule
	broken   error    // why the object can't be read; then it has no spec
}

// mostUnknown is after how many unknown fields the decoder stops counting.
const mostUnknown = 100

func readClusterPolicy(u *unstructured.Unstructured) *clusterPolicyObject {
	out := &clusterPolicyObject{}
	text, err := json.Marshal(u.Object)
	var unknown []error
	if err == nil {
		unknown, err = kjson.UnmarshalStrict(text, &out.ClusterNetworkPolicy)
	}
	if err != nil {
		*out = clusterPolicyObject{broken: err}
		out.SetName(u.GetName())
		out.SetUID(u.GetUID())
	}
	out.observed = observedOf(u)
	if len(unknown) >= mostUnknown { // of others nothing is known
		out.unknown = append(out.unknown, fmt.Sprintf("spec.* (%d fields or more)", mostUnknown))
	}
	for _, e := range unknown {
		if _, path, ok := strings.Cut(e.Error(), `unknown field "`); ok {
			out.unknown = append(out.unknown, strings.TrimSuffix(path, `"`))
		}
	}
	return out
}
