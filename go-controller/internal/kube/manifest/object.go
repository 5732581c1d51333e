package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/snapshot"
)

// typeMeta is apiVersion and kind of an object.
type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// find is the row of a kind that is used; ok is false for any other. A kind that is used in another version of its API
// group is an error.
func (r *reader) find(m typeMeta) (k kinds.Kind, ok bool, err error) {
	group, _, hasGroup := strings.Cut(m.APIVersion, "/")
	if !hasGroup {
		group = ""
	}
	if k, ok = kinds.Find(r.kinds, cluster.Kind(m.Kind)); !ok || k.Resource.Group != group {
		return k, false, nil
	}
	if k.APIVersion() != m.APIVersion {
		return k, false, fmt.Errorf("apiVersion %q of kind %s, want %q: the object is not used",
			m.APIVersion, m.Kind, k.APIVersion())
	}
	return k, true, nil
}

// object takes in one object, or each item of a list. outer is the list that it is an item of: items of a PodList need
// not say that they are Pods.
func (r *reader) object(at place, js []byte, outer typeMeta) {
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
	k, ok, err := r.find(m)
	if err != nil {
		r.fail(fmt.Errorf("%s: %w", at, err))
		return
	}
	if !ok {
		if found := snapshot.Settings(js); found != nil {
			r.out.Settings = found
			return
		}
		r.ignored[IgnoredKind{APIVersion: m.APIVersion, Kind: m.Kind}]++
		return
	}
	r.decode(at, js, k)
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
func (r *reader) decode(at place, js []byte, k kinds.Kind) {
	obj := k.New()
	unknown, err := kjson.UnmarshalStrict(js, obj)
	what := strings.TrimSpace(string(k.Kind) + " " + kinds.NameOf(obj).String())
	if err != nil {
		r.fail(fmt.Errorf("%s: %s: %w", at, what, err))
		return
	}
	for _, u := range unknown {
		r.warn(at, fmt.Sprintf("%s: %v", what, u))
	}
	if k.Namespaced {
		obj.SetNamespace(cmp.Or(obj.GetNamespace(), metav1.NamespaceDefault))
	} else {
		obj.SetNamespace("")
	}
	if err := validName(k, obj); err != nil {
		r.fail(fmt.Errorf("%s: %s: %w", at, what, err))
		return
	}
	o, problems := k.Decode(obj)
	found := located{at: at, object: o, problems: problems}
	if k.Limited {
		found.raw = obj
	}
	r.seen[o.Ref()] = append(r.seen[o.Ref()], found)
}

// validName accepts the names that an API server accepts: the names of rows are made of them.
func validName(k kinds.Kind, obj metav1.Object) error {
	if obj.GetName() == "" {
		return errors.New("metadata.name is missing")
	}
	if msgs := k.ValidName(obj.GetName()); len(msgs) > 0 {
		return fmt.Errorf("metadata.name %q: %s", obj.GetName(), msgs[0])
	}
	if ns := obj.GetNamespace(); ns != "" {
		if msgs := validation.IsDNS1123Label(ns); len(msgs) > 0 {
			return fmt.Errorf("metadata.namespace %q: %s", ns, msgs[0])
		}
	}
	return nil
}
