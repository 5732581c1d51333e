package topology_test

import (
	"fmt"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/translate/topology"
)

// The condition of a network that somebody has deleted names the pods that keep it.
func TestPodsThatKeepADeletedNetwork(t *testing.T) {
	const asked = "pods of the namespace can ask for an interface in the network"
	const kept = "somebody has deleted the network: it stays while pods have interfaces in it: "
	name := cluster.Name{Namespace: "shop", Name: "blue"}
	n := names.Defined(name.Namespace, name.Name)
	for _, c := range []struct {
		deleted bool
		pods    int
		want    string
	}{
		{false, 2, asked}, {true, 0, asked}, {true, 2, kept + "shop/p0, shop/p1"},
		{true, 5, kept + "shop/p0, shop/p1, shop/p2, and 2 more"},
	} {
		objects := []cluster.Object{&cluster.Node{Name: "n", UID: "n"}, &cluster.Namespace{Name: "shop", UID: "s"},
			&cluster.UserNetwork{Name: name, UID: "u", Deleting: c.deleted, Protected: true,
				Network: &cluster.Network{Name: n, Topology: cluster.Layer2, UserDefined: true}}}
		for i := range c.pods {
			p := cluster.Name{Namespace: "shop", Name: fmt.Sprint("p", i)}
			objects = append(objects, &cluster.Pod{Name: p, UID: p.Name, Node: "n",
				Attachments: []cluster.Attachment{{Network: n, Interface: "net1"}, {Network: n, Interface: "net2"}}})
		}
		s := offline.New(config.DefaultCluster(), objects).State
		rows, err := topology.Cluster{Schema: nb.NewSchema()}.Rows(s,
			nb.Owner{Kind: names.KindCluster, Name: n.Owner(names.UserOwner)})
		if err != nil || rows.Judged == nil || rows.Judged.Condition.Message != c.want || !rows.Judged.Condition.True {
			t.Errorf("deleted %v, %d pods: %+v, %v; want %q", c.deleted, c.pods, rows.Judged, err, c.want)
		}
	}
}
