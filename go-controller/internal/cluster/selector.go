package cluster

import (
	"cmp"
	"slices"
	"strings"
)

// Operator is the operator of a Requirement (Kubernetes API, LabelSelectorRequirement).
type Operator string

// The operators of the API.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
)

// Requirement is what a LabelSelector asks of one label.
type Requirement struct {
	Key      string
	Operator Operator
	Values   []string // of In and NotIn
}

// met is true when labels are as the requirement asks. NotIn is met without such a label, too.
func (r Requirement) met(labels Labels) bool {
	value, ok := labels.Get(r.Key)
	switch r.Operator {
	case In:
		return ok && slices.Contains(r.Values, value)
	case NotIn:
		return !ok || !slices.Contains(r.Values, value)
	case Exists:
		return ok
	case DoesNotExist:
		return !ok
	}
	return false
}

// String is the requirement as `kubectl get --selector` takes it.
func (r Requirement) String() string {
	values := strings.Join(r.Values, ",")
	switch r.Operator {
	case In:
		if len(r.Values) == 1 {
			return r.Key + "=" + values
		}
		return r.Key + " in (" + values + ")"
	case NotIn:
		return r.Key + " notin (" + values + ")"
	case DoesNotExist:
		return "!" + r.Key
	}
	return r.Key
}

// LabelSelector selects objects by their labels: those that meet every requirement. The zero value selects all.
type LabelSelector struct{ requirements []Requirement }

// NewLabelSelector is the selector of these requirements. The order of requirements and values makes no difference.
func NewLabelSelector(requirements ...Requirement) LabelSelector {
	var out []Requirement
	for _, r := range requirements {
		r.Values = slices.Compact(slices.Sorted(slices.Values(r.Values)))
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Requirement) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
	})
	out = slices.CompactFunc(out, func(a, b Requirement) bool {
		return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
	})
	return LabelSelector{out}
}

// All is true when the selector selects every object.
func (s LabelSelector) All() bool { return len(s.requirements) == 0 }

// Keys lists the labels that the selector asks for.
func (s LabelSelector) Keys() []string {
	var out []string
	for _, r := range s.requirements {
		out = append(out, r.Key)
	}
	return out
}

// Selects is true when an object with these labels is selected.
func (s LabelSelector) Selects(labels Labels) bool {
	for _, r := range s.requirements {
		if !r.met(labels) {
			return false
		}
	}
	return true
}

// String is the selector as `kubectl get --selector` takes it; "" for all. Selectors that ask the same have the same
// text.
func (s LabelSelector) String() string {
	texts := make([]string, len(s.requirements))
	for i, r := range s.requirements {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}

// PodSelector selects pods by their labels, and by their namespace: one namespace by name, or those whose labels a
// selector selects.
type PodSelector struct {
	Namespace  string        // "" when Namespaces says which
	Namespaces LabelSelector // without meaning when Namespace says which
	Pods       LabelSelector
}

// Whole is true when the selector selects all pods of one namespace.
func (s PodSelector) Whole() bool { return s.Namespace != "" && s.Pods.All() }

// All is true when the selector selects all pods of all namespaces.
func (s PodSelector) All() bool { return s.Namespace == "" && s.Namespaces.All() && s.Pods.All() }

// In is true when the selector may select pods of a namespace. n is nil for a namespace that is not known (yet).
func (s PodSelector) In(namespace string, n *Namespace) bool {
	if s.Namespace != "" {
		return s.Namespace == namespace
	}
	return s.Namespaces.All() || n != nil && s.Namespaces.Selects(n.Labels)
}

// String is such as "pods app=web of namespace shop". Selectors that ask the same have the same text.
func (s PodSelector) String() string {
	pods, of := "all pods", "all namespaces"
	if !s.Pods.All() {
		pods = "pods " + s.Pods.String()
	}
	switch {
	case s.Namespace != "":
		of = "namespace " + s.Namespace
	case !s.Namespaces.All():
		of = "namespaces " + s.Namespaces.String()
	}
	return pods + " of " + of
}
