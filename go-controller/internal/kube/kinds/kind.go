package kinds

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// Daemon is a program of ours that watches an API server.
type Daemon string

// The daemons, as operators start them.
const (
	Master Daemon = "ovnkube master"
	Agent  Daemon = "ovnkube node"
)

// Object is an API object with metadata.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind is the row of one kind.
type Kind struct {
	Kind       cluster.Kind
	Resource   schema.GroupVersionResource
	Namespaced bool
	// Optional tells that an API server may not serve this kind. Then there are no objects.
	Optional    bool
	WatchedBy   []Daemon
	AnnotatedBy []Daemon // who patches annotations of its objects
	Subresource string   // through which annotations are patched, such as "status"; "" for the object itself
	JudgedBy    []Daemon // who writes a condition into the status of its objects
	// SharedConditions tells that other programs write conditions of its objects, too, which a patch must leave. The
	// conditions are those of Nodes in form, and the kind is not one of a CustomResourceDefinition: for these the API
	// server knows no strategic merge patch.
	SharedConditions bool
	ProtectedBy      []Daemon // who adds and removes a finalizer of its objects
	// ValidName lists what is wrong with the name of an object.
	ValidName func(name string) []string
	// New makes an empty object, NewList an empty list.
	New     func() Object
	NewList func() runtime.Object
	// ListWatch lists and watches all objects.
	ListWatch func(*client.Clients) *cache.ListWatch
	// Decode makes a cluster value of an object, and says what is wrong with the object. It returns nil for an object
	// of another type.
	Decode func(runtime.Object) (cluster.Object, []cluster.Problem)
	// Limited tells that Decode leaves out what exceeds limits that the operator sets.
	Limited bool
	// Reduce is what a snapshot keeps of an object beside its metadata, as JSON has it: what the network depends on. Nil:
	// the fields that package snapshot keeps of all kinds.
	Reduce func(whole map[string]any) map[string]any
}

// APIVersion is what objects of the kind have as apiVersion.
func (k Kind) APIVersion() string { return k.Resource.GroupVersion().String() }

// Plural is the resource with its group, as `kubectl get` takes it: "pods", "endpointslices.discovery.k8s.io".
func (k Kind) Plural() string { return k.Resource.GroupResource().String() }

// Find is the row of a kind; ok is false when there is none.
func Find(rows []Kind, kind cluster.Kind) (row Kind, ok bool) {
	i := slices.IndexFunc(rows, func(k Kind) bool { return k.Kind == kind })
	if i < 0 {
		return Kind{}, false
	}
	return rows[i], true
}

// WatchedBy are the rows of the kinds that a daemon watches.
func WatchedBy(rows []Kind, d Daemon) (out []Kind) {
	for _, k := range rows {
		if slices.Contains(k.WatchedBy, d) {
			out = append(out, k)
		}
	}
	return out
}
