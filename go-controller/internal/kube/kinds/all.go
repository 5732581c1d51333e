package kinds

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// All are the rows of all kinds that the cluster is made of. Policies have the default limits:
// Within decodes those of a cluster, with the limits of its master.
func All() []Kind { return Within(config.DefaultPolicies()) }

// Within are the rows of All, with these limits of policies.
func Within(limits config.Policies) []Kind {
	return []Kind{Node(), Namespace(), Pod(), Service(), EndpointSlice(), ServiceCIDR(), NetworkPolicy(limits),
		ClusterNetworkPolicy(limits), NetworkDefinition(), UserNetwork(), MultiNetworkPolicy(limits),
		ClusterUserNetwork(), IPAMClaim()}
}

// Node is the row of Nodes.
func Node() Kind {
	return row(Kind{
		Kind: cluster.KindNode, Resource: corev1.SchemeGroupVersion.WithResource("nodes"), ValidName: subdomain,
		WatchedBy: []Daemon{Master, Agent}, AnnotatedBy: []Daemon{Master, Agent}, JudgedBy: []Daemon{Master},
		SharedConditions: true, Reduce: reducedNode,
	}, func(k kubernetes.Interface) api[*corev1.NodeList] { return k.CoreV1().Nodes() }, decodeNode)
}

// Namespace is the row of Namespaces.
func Namespace() Kind {
	return row(Kind{
		Kind: cluster.KindNamespace, Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), ValidName: label,
		WatchedBy: []Daemon{Master},
	}, func(k kubernetes.Interface) api[*corev1.NamespaceList] { return k.CoreV1().Namespaces() }, decodeNamespace)
}

// Pod is the row of Pods. Annotations are patched through the status, which admission webhooks for pods do not delay.
func Pod() Kind {
	return row(Kind{
		Kind: cluster.KindPod, Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespaced: true,
		ValidName: subdomain, WatchedBy: []Daemon{Master, Agent}, AnnotatedBy: []Daemon{Master}, Subresource: "status",
		Reduce: reducedPod,
	}, func(k kubernetes.Interface) api[*corev1.PodList] { return k.CoreV1().Pods("") }, decodePod)
}

// Service is the row of Services.
func Service() Kind {
	return row(Kind{
		Kind: cluster.KindService, Resource: corev1.SchemeGroupVersion.WithResource("services"), Namespaced: true,
		ValidName: label, WatchedBy: []Daemon{Master, Agent},
	}, func(k kubernetes.Interface) api[*corev1.ServiceList] { return k.CoreV1().Services("") }, decodeService)
}

// EndpointSlice is the row of EndpointSlices.
func EndpointSlice() Kind {
	return row(Kind{
		Kind: cluster.KindEndpointSlice, Resource: discoveryv1.SchemeGroupVersion.WithResource("endpointslices"),
		Namespaced: true, ValidName: subdomain, WatchedBy: []Daemon{Master, Agent},
	}, func(k kubernetes.Interface) api[*discoveryv1.EndpointSliceList] {
		return k.DiscoveryV1().EndpointSlices("")
	}, decodeSlice)
}

// ServiceCIDR is the row of ServiceCIDRs, which API servers before Kubernetes 1.33 do not serve.
func ServiceCIDR() Kind {
	return row(Kind{
		Kind: cluster.KindServiceCIDR, Resource: networkingv1.SchemeGroupVersion.WithResource("servicecidrs"),
		ValidName: subdomain, Optional: true, WatchedBy: []Daemon{Master, Agent},
	}, func(k kubernetes.Interface) api[*networkingv1.ServiceCIDRList] {
		return k.NetworkingV1().ServiceCIDRs()
	}, decodeServiceCIDR)
}

// NetworkPolicy is the row of NetworkPolicies.
func NetworkPolicy(limits config.Policies) Kind {
	return row(Kind{
		Kind: cluster.KindNetworkPolicy, Resource: networkingv1.SchemeGroupVersion.WithResource("networkpolicies"),
		Namespaced: true, ValidName: subdomain, WatchedBy: []Daemon{Master}, Limited: true,
	}, func(k kubernetes.Interface) api[*networkingv1.NetworkPolicyList] {
		return k.NetworkingV1().NetworkPolicies("")
	}, func(p *networkingv1.NetworkPolicy) (*cluster.NetworkPolicy, []cluster.Problem) {
		return decodePolicy(p, limitsOf(limits))
	})
}

func subdomain(name string) []string { return validation.IsDNS1123Subdomain(name) }

func label(name string) []string { return validation.IsDNS1123Label(name) }

// api is a typed client of one kind.
type api[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// row completes a Kind by its typed client and its decoder.
func row[
	T, L any, P interface {
		*T
		Object
	}, PL interface {
		*L
		runtime.Object
	}, O cluster.Object,
](
	k Kind, of func(kubernetes.Interface) api[PL], decode func(P) (O, []cluster.Problem),
) Kind {
	k.New = func() Object { return P(new(T)) }
	k.NewList = func() runtime.Object { return PL(new(L)) }
	k.ListWatch = func(c *client.Clients) *cache.ListWatch {
		return &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return of(c.Kube).List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return of(c.Kube).Watch(ctx, o)
			},
		}
	}
	k.Decode = func(obj runtime.Object) (cluster.Object, []cluster.Problem) {
		typed, ok := obj.(P)
		if !ok {
			return nil, nil
		}
		return decode(typed)
	}
	return k
}
