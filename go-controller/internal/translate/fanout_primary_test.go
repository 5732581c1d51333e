package translate_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// A pod of a primary network concerns the services that have it as an endpoint, and no others.
func TestFanOutOfPrimaryServices(t *testing.T) {
	m := newMaster()
	m.begin(t)
	in := func(name string) cluster.Name { return cluster.Name{Namespace: "red", Name: name} }
	pod := func(i int) *cluster.Pod {
		return &cluster.Pod{Name: in(fmt.Sprint("p", i)), UID: fmt.Sprint("u", i), Created: int64(i), Node: "n1"}
	}
	objects := []cluster.Object{&cluster.Node{Name: "n1", UID: "u-n1", ChassisID: "c1"},
		&cluster.Namespace{Name: "red", Labels: cluster.NewLabels(map[string]string{names.PrimaryLabel: ""})},
		&cluster.NetworkDefinition{Name: in("own"), Network: &cluster.Network{Name: names.Defined("red", "own"),
			Topology: cluster.Layer2, Primary: true,
			Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/24")}}}}}
	for i := range 3 {
		objects = append(objects, pod(i), &cluster.Service{Name: in(fmt.Sprint("s", i)), Ports: service(in("")).Ports,
			ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 0, byte(i + 1)})}})
	}
	m.settle(t, newPath(0), come(objects...)...)
	for i := range 3 { // each service has one pod, and s2 has p1, too
		e := &cluster.EndpointSlice{Name: in(fmt.Sprint("e", i)), Service: fmt.Sprint("s", i)}
		for k := range 3 {
			if k == i || i == 2 && k == 1 {
				addr := m.State.PodNetworks[cluster.PodPort{Pod: in(fmt.Sprint("p", k))}].IPs[0].Addr()
				e.Endpoints = append(e.Endpoints, cluster.Endpoint{Addr: addr, Pod: fmt.Sprint("p", k),
					Conditions: cluster.Ready | cluster.Serving})
			}
		}
		m.settle(t, newPath(0), come(e)...)
	}
	services := func(e cluster.Event) (out []string) {
		for _, o := range m.affected(t, e) {
			if o.Kind == names.KindService {
				out = append(out, o.Name)
			}
		}
		return out
	}
	labelled := pod(1)
	labelled.Labels = cluster.NewLabels(map[string]string{"a": "b"})
	for _, c := range []struct {
		what string
		e    cluster.Event
		want []string
	}{
		{"a pod comes that is no endpoint", event(pod(7)), nil},
		{"a pod's labels change", event(labelled), nil},
		{"a pod goes", cluster.Event{Ref: pod(1).Ref()}, []string{"red/s1", "red/s2"}},
		{"it comes again", event(pod(1)), []string{"red/s1", "red/s2"}},
		{"a service of the exits comes", event(&cluster.Service{Name: cluster.ExitServices()[0]}),
			[]string{cluster.ExitServices()[0].String()}},
	} {
		if got := services(c.e); !slices.Equal(got, c.want) {
			t.Errorf("%s: dirties the services %v, want %v", c.what, got, c.want)
		}
	}
	rows, err := m.Rows(nb.Owner{Kind: names.KindService, Name: "red/s0"})
	if err != nil || len(rows.Reports) > 0 {
		t.Errorf("rows of red/s0: %v, %v, want no reports", rows.Reports, err)
	}
}
