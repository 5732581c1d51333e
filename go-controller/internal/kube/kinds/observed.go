package kinds

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// observedOf is what an object has in its status. A master writes the conditions of these types.
func observedOf(u *unstructured.Unstructured, own ...string) cluster.Observed {
	out := cluster.Observed{Generation: u.GetGeneration()}
	_, out.HasStatus = u.Object["status"].(map[string]any)
	list, found, err := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	if err != nil || !found || list == nil {
		return out
	}
	text, err := json.Marshal(list)
	if err != nil { // it came as JSON
		return out
	}
	out.Conditions = string(text)
	var conditions []metav1.Condition
	if json.Unmarshal(text, &conditions) != nil { // those of ours are unknown: they are written anew
		return out
	}
	for _, t := range own {
		at := slices.IndexFunc(conditions, func(c metav1.Condition) bool {
			return c.Type == t && c.Status != metav1.ConditionUnknown
		})
		if at >= 0 {
			c := conditions[at]
			out.Own = append(out.Own, cluster.Condition{Type: t, True: c.Status == metav1.ConditionTrue, Reason: c.Reason,
				Message: c.Message, Generation: c.ObservedGeneration})
		}
	}
	return out
}
