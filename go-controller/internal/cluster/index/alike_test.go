package index

import (
	"fmt"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// What is remembered of pods stays bounded, however many labels there were, and what is forgotten is.
func TestAlikePods(t *testing.T) {
	var a alikePods
	list, labels := []*Selection{{Hash: "h"}}, cluster.NewLabels(map[string]string{"app": "web"})
	for _, namespace := range []string{"shop", "bank"} {
		a.put(namespace, labels, list)
	}
	a.forget("shop")
	if _, ok := a.get("shop", labels); ok {
		t.Error("the list of a namespace that was forgotten is there")
	}
	if got, ok := a.get("bank", labels); !ok || len(got) != 1 || got[0] != list[0] {
		t.Errorf("the other namespace's list is %v, %v", got, ok)
	}
	if _, ok := a.get("bank", cluster.Labels{}); ok {
		t.Error("there is a list of labels that no pod had")
	}
	a.forget("")
	if _, ok := a.get("bank", labels); ok || a.size != 0 {
		t.Errorf("%d lists after all were forgotten", a.size)
	}
	for i := range 3 * alikeMax {
		a.put("shop", cluster.NewLabels(map[string]string{"job": fmt.Sprint(i)}), nil)
		if n := len(a.lists["shop"]); n != a.size || n > alikeMax {
			t.Fatalf("%d lists, counted as %d, want at most %d", n, a.size, alikeMax)
		}
	}
}
