package serviceport_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
	"github.com/northbound-net/northbound/go-controller/internal/kubeio"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func nodeConfig() config.Node {
	c := config.DefaultNode()
	c.Name = "n1"
	c.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd02::/112")}
	return c
}

// services decodes a *.in.yaml, which has Services as Kubernetes has them.
func services(t *testing.T, raw []byte) (out []*cluster.Service) {
	t.Helper()
	for _, doc := range strings.Split(string(raw), "\n---\n") {
		var s corev1.Service
		if err := yaml.UnmarshalStrict([]byte(doc), &s); err != nil {
			t.Fatal(err)
		}
		o, _, _ := kubeio.Decode(&s)
		out = append(out, o.(*cluster.Service))
	}
	return out
}

// Each testdata/NAME.in.yaml gives NAME.out.txt, in whatever order its services
// come.
func TestPlans(t *testing.T) {
	testkit.Golden(t, "testdata", 6, func(t *testing.T, raw []byte) string {
		list := services(t, raw)
		got := text(list)
		for range 10 {
			rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			if again := text(list); again != got {
				t.Fatalf("in another order:\n%s\nbefore:\n%s", again, got)
			}
		}
		return got
	})
}

func text(list []*cluster.Service) string {
	plan, notes := serviceport.Plan(list, nodeConfig())
	var b strings.Builder
	for _, i := range plan.Host {
		fmt.Fprintf(&b, "%s\n%s\n", i, i.(hostplan.ServicePorts).Entries)
	}
	for _, n := range notes {
		fmt.Fprintf(&b, "note: %s: %s\n", n.Service, n.Message)
	}
	return b.String()
}

// One service costs as many entries as it has ports and addresses, and one
// change changes one.
func TestCost(t *testing.T) {
	var list []*cluster.Service
	for i := range 10000 {
		list = append(list, &cluster.Service{
			Name: cluster.Name{Namespace: "default", Name: fmt.Sprint("s", i)}, ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i / 250), byte(i%250 + 1)})},
			Ports: []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80, NodePort: uint16(20000 + i)}},
		})
	}
	item := func() hostplan.ServicePorts {
		plan, _ := serviceport.Plan(list, nodeConfig())
		return plan.Host[0].(hostplan.ServicePorts)
	}
	before := item()
	if n := strings.Count(before.Entries, "\n") + 1; n != 10000 {
		t.Errorf("%d entries for 10,000 node ports", n)
	}
	list[77].Ports[0].NodePort = 32000
	changes, err := hostplan.ServiceChanges(item(), before)
	if err != nil || len(changes) != 2 || changes[0].String() != "+ serve TCP 0.0.0.0:32000 to 10.96.0.78:80" || changes[1].String() != "- serve TCP 0.0.0.0:20077 to 10.96.0.78:80" {
		t.Errorf("another node port: %v %v", changes, err)
	}
}

func TestParseServiceEntry(t *testing.T) {
	for _, line := range []string{
		"", "serve", "serve TCP 10.0.0.1:80", "serve TCP 10.0.0.1:80 to nowhere", "serve TCP 10.0.0.1 to 10.96.0.1:80",
		"allow TCP 10.0.0.1:80 to 10.96.0.1:80", "allow TCP 10.0.0.1:80 from 10.96.0.1", "inside TCP 10.0.0.1:80 to 10.96.0.1:80", "other TCP 10.0.0.1:80",
	} {
		if e, err := hostplan.ParseServiceEntry(line); err == nil {
			t.Errorf("%q is read as %v", line, e)
		}
	}
}
