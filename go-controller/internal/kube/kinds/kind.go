package kinds

import (
	"errors"
	"fmt"
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
}

// APIVersion is what objects of the kind have as apiVersion.
func (k Kind) APIVersion() string { return k.Resource.GroupVersion().String() }

// Plural is the resource with its group, as `kubectl get` takes it: "pods", "endpointslices.discovery.k8s.io".
func (k Kind) Plural() string { return k.Resource.GroupResource().String() }

// Check says which rows are incomplete or contradict each other.
func Check(rows []Kind) error {
	var errs []error
	kinds, resources := map[cluster.Kind]bool{}, map[schema.GroupResource]bool{}
	for i, k := range rows {
		if err := k.check(); err != nil {
			errs = append(errs, fmt.Errorf("row %d of the kinds, %q: %w", i, k.Kind, err))
			continue
		}
		if kinds[k.Kind] || resources[k.Resource.GroupResource()] {
			errs = append(errs, fmt.Errorf("row %d of the kinds, %q (%s): there is a row for it already, want one",
				i, k.Kind, k.Plural()))
		}
		kinds[k.Kind], resources[k.Resource.GroupResource()] = true, true
	}
	return errors.Join(errs...)
}

// check says what a row lacks.
func (k Kind) check() error {
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"Kind", k.Kind != ""},
		{"Resource", k.Resource.Version != "" && k.Resource.Resource != ""},
		{"WatchedBy", len(k.WatchedBy) > 0},
		{"ValidName", k.ValidName != nil},
		{"New", k.New != nil},
		{"NewList", k.NewList != nil},
		{"ListWatch", k.ListWatch != nil},
		{"Decode", k.Decode != nil},
	} {
		if !field.given {
			return fmt.Errorf("field %s is not set, want all of a row", field.name)
		}
	}
	empty, want := k.New(), cluster.Ref{Kind: k.Kind, Name: cluster.Name{Name: "name"}}
	empty.SetName(want.Name.Name)
	if k.Namespaced {
		want.Name.Namespace = "namespace"
		empty.SetNamespace(want.Name.Namespace)
	}
	o, _ := k.Decode(empty)
	if o == nil {
		return fmt.Errorf("field Decode does not decode the %T that New makes", empty)
	}
	if got := o.Ref(); got != want {
		return fmt.Errorf("field Decode makes %q of an object that is %q", got, want)
	}
	return nil
}

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

// Decode decodes an object of any of the kinds; ok is false for an object of another type.
func Decode(rows []Kind, obj any) (o cluster.Object, problems []cluster.Problem, ok bool) {
	typed, is := obj.(runtime.Object)
	if !is {
		return nil, nil, false
	}
	for _, k := range rows {
		if o, problems := k.Decode(typed); o != nil {
			return o, problems, true
		}
	}
	return nil, nil, false
}
