package local

import (
	"errors"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// The API servers' addresses are watched once somebody asks for them, and nothing else is. An agent that may not read
// them hears of none.
func TestAPIServers(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		slice := endpointSlice("kubernetes", map[string]string{"10.0.1.3": "n1"})
		slice.Endpoints[0].NodeName = nil
		l, api := startLocalWith(t, func(l *Watcher) {
			c := l.clients.Kube.(*fake.Clientset)
			c.PrependReactor("list", "endpointslices", func(k8stesting.Action) (bool, runtime.Object, error) {
				return !allowed, nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", errors.New("no rights"))
			})
		}, slice)
		for _, _, ok := l.Services(); !ok; _, _, ok = l.Services() {
			<-l.Changed()
		}
		for _, a := range api.Actions() {
			if a.GetResource().Resource == "endpointslices" {
				t.Errorf("nobody asked, and the agent does %s", a.GetVerb())
			}
		}
		addrs, ok := l.APIServers()
		for ; !ok; addrs, ok = l.APIServers() {
			<-l.Changed()
		}
		if want := map[bool]int{true: 1}[allowed]; len(addrs) != want || want > 0 && addrs[0].String() != "10.0.1.3" {
			t.Errorf("allowed %v: addresses %v", allowed, addrs)
		}
		asked := ""
		for _, a := range api.Actions() {
			if list, ok := a.(k8stesting.ListAction); ok && a.Matches("list", "endpointslices") {
				asked = list.GetListRestrictions().Fields.String()
			}
		}
		if asked != "metadata.name=kubernetes,metadata.namespace=default" {
			t.Errorf("selector %q", asked)
		}
	}
}
