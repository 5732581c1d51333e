package kubeio

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// typeMeta is apiVersion and kind of an object.
type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// known makes an empty object of a kind that is used, nil for any other.
func (m typeMeta) known() metav1.Object {
	switch m {
	case typeMeta{"v1", "Node"}:
		return &corev1.Node{}
	case typeMeta{"v1", "Namespace"}:
		return &corev1.Namespace{}
	case typeMeta{"v1", "Pod"}:
		return &corev1.Pod{}
	case typeMeta{"v1", "Service"}:
		return &corev1.Service{}
	case typeMeta{"discovery.k8s.io/v1", "EndpointSlice"}:
		return &discoveryv1.EndpointSlice{}
	case typeMeta{"networking.k8s.io/v1", "ServiceCIDR"}:
		return &networkingv1.ServiceCIDR{}
	}
	return nil
}

// object takes in one object, or each item of a list. outer is the list that
// it is an item of: items of a PodList need not say that they are Pods.
func (r *manifestReader) object(at place, js []byte, outer typeMeta) {
	var probe struct {
		typeMeta
		Items *[]json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(js, &probe); err != nil {
		r.fail(fmt.Errorf("%s: %w, got %s", at, errNotAnObject, beginning(js)))
		return
	}
	m := probe.typeMeta
	if kind, isList := strings.CutSuffix(outer.Kind, "List"); isList && kind != "" && m.Kind == "" {
		m = typeMeta{cmp.Or(m.APIVersion, outer.APIVersion), kind}
	}
	if m.Kind == "" || m.APIVersion == "" {
		r.fail(fmt.Errorf("%s: %w, got %s", at, errNotAnObject, beginning(js)))
		return
	}
	if strings.HasSuffix(m.Kind, "List") && probe.Items != nil {
		if outer.Kind != "" {
			r.fail(fmt.Errorf("%s: a %s inside of a %s: want the objects themselves", at, m.Kind, outer.Kind))
			return
		}
		for i, item := range *probe.Items {
			at.item = i + 1
			r.object(at, item, m)
		}
		return
	}
	obj := m.known()
	if obj == nil {
		r.ignored[IgnoredKind{APIVersion: m.APIVersion, Kind: m.Kind}]++
		return
	}
	r.decode(at, js, m.Kind, obj)
}

// beginning is the start of a text on one line, for an error.
func beginning(js []byte) string {
	const most = 60
	s := strings.Join(strings.Fields(string(js[:min(len(js), 4*most)])), " ")
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

// decode takes in an object of a kind that is used.
func (r *manifestReader) decode(at place, js []byte, kind string, obj metav1.Object) {
	unknown, err := kjson.UnmarshalStrict(js, obj)
	what := strings.TrimSpace(kind + " " + cluster.Name{Namespace: obj.GetNamespace(), Name: obj.GetName()}.String())
	if err != nil {
		r.fail(fmt.Errorf("%s: %s: %w", at, what, err))
		return
	}
	for _, u := range unknown {
		r.warn(at, fmt.Sprintf("%s: %v", what, u))
	}
	switch kind {
	case "Node", "Namespace", "ServiceCIDR":
		obj.SetNamespace("")
	default:
		obj.SetNamespace(cmp.Or(obj.GetNamespace(), metav1.NamespaceDefault))
	}
	if err := validName(kind, obj); err != nil {
		r.fail(fmt.Errorf("%s: %s: %w", at, what, err))
		return
	}
	o, problems, ok := Decode(obj)
	if !ok {
		r.fail(fmt.Errorf("%s: %s: a %T can't be decoded", at, what, obj))
		return
	}
	r.seen[o.Ref()] = append(r.seen[o.Ref()], manifestObject{at, o, problems})
}

// validName holds the names to what an API server accepts: the names of rows
// are made of them.
func validName(kind string, obj metav1.Object) error {
	if obj.GetName() == "" {
		return fmt.Errorf("metadata.name is missing")
	}
	check := validation.IsDNS1123Subdomain
	if kind == "Namespace" || kind == "Service" {
		check = validation.IsDNS1123Label
	}
	if msgs := check(obj.GetName()); len(msgs) > 0 {
		return fmt.Errorf("metadata.name %q: %s", obj.GetName(), msgs[0])
	}
	if ns := obj.GetNamespace(); ns != "" {
		if msgs := validation.IsDNS1123Label(ns); len(msgs) > 0 {
			return fmt.Errorf("metadata.namespace %q: %s", ns, msgs[0])
		}
	}
	return nil
}
