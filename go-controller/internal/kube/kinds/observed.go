package kinds

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// observedOf is what an object has in its status. A master writes the conditions of these types; also may be "".
func observedOf(u *unstructured.Unstructured, own, also string) cluster.Observed {
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
	if json.Unmarshal(text, &conditions) != nil { // the one of ours is unknown: it is written anew
		return out
	}
	for _, c := range conditions {
		if c.Status == metav1.ConditionUnknown {
			continue
		}
		ours := cluster.Condition{Type: c.Type, True: c.Status == metav1.ConditionTrue, Reason: c.Reason, Message: c.Message,
			Generation: c.ObservedGeneration}
		switch c.Type {
		case own:
			out.Own = ours
		case also:
			out.Also = ours
		}
	}
	return out
}
