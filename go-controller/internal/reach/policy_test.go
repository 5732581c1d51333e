package reach_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/reach"
)

// The text names five of many pods. Pods of the host's network, and those that have ended, are no members.
func TestPolicyOfManyPods(t *testing.T) {
	for pods, want := range map[int]string{
		0: "no pod", 1: "shop/p0", 6: "shop/p0, shop/p1, shop/p2, shop/p3, shop/p4, shop/p5",
		9: "shop/p0, shop/p1, shop/p2, shop/p3, shop/p4 and 4 more pods",
	} {
		all := cluster.NewLabelSelector()
		objects := []cluster.Object{&cluster.Node{Name: "n1", UID: "u1"}, &cluster.Namespace{Name: "shop"},
			&cluster.NetworkPolicy{Name: cluster.Name{Namespace: "shop", Name: "np"}, Pods: all,
				Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{AnyPort: true,
					Peers: []cluster.PolicyPeer{{Pods: &cluster.PodSelector{Namespace: "shop", Pods: all}}}}}}}}
		for i := range pods {
			objects = append(objects, &cluster.Pod{Name: cluster.Name{Namespace: "shop", Name: fmt.Sprint("p", i)},
				UID: fmt.Sprint(i), Node: "n1"})
		}
		objects = append(objects,
			&cluster.Pod{Name: cluster.Name{Namespace: "shop", Name: "host"}, UID: "h", Node: "n1", HostNetwork: true},
			&cluster.Pod{Name: cluster.Name{Namespace: "shop", Name: "ended"}, UID: "e", Node: "n1", Finished: true})
		made := offline.New(config.DefaultCluster(), objects)
		p, err := reach.OfPolicy(made.Core, names.KindPolicy, "shop/np", nil)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := p.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"Selects\n  " + want + "\n",
			"  spec.ingress[0]: from all pods of namespace shop (" + want + "), all ports\n"} {
			if !strings.Contains(text.String(), line) {
				t.Errorf("%d pods: %s\nwant in it\n%s", pods, text.String(), line)
			}
		}
		if len(p.Selects) != pods {
			t.Errorf("%d pods: JSON has %d", pods, len(p.Selects))
		}
	}
}
