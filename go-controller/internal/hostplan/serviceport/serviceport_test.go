package serviceport_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func ownSubnets() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("fd01:0:0:1::/64"), netip.MustParsePrefix("10.128.2.0/23")}
}

// facts have the addresses of n1, which is the node, of n2, n4 and n5, and one
// of n3; nothing is known of others.
func facts(endpoints serviceport.Slices) serviceport.Facts {
	addrs := func(texts ...string) (out []netip.Addr) {
		for _, a := range texts {
			out = append(out, netip.MustParseAddr(a))
		}
		return out
	}
	return serviceport.Facts{
		Endpoints: endpoints, Own: ownSubnets(), Addrs: addrs("172.18.0.2", "fd18::2"),
		Nodes: map[string][]netip.Addr{
			"n2": addrs("172.18.0.3", "fd18::3"), "n3": addrs("172.18.0.4"), "n4": addrs("172.18.0.5", "fd18::5"),
			"n5": addrs("fd18::6", "172.18.0.6"),
		},
	}
}

func nodeConfig() config.Node { return named("n1") }

func named(node string) config.Node {
	c := config.DefaultNode()
	c.Name = node
	c.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd02::/112")}
	return c
}

// decoded is a *.in.yaml, which has Services and EndpointSlices as Kubernetes
// has them.
type decoded struct {
	services []*cluster.Service
	slices   serviceport.Slices
}

func decode(t *testing.T, raw []byte) decoded {
	t.Helper()
	out := decoded{slices: serviceport.Slices{}}
	for _, doc := range strings.Split(string(raw), "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
			t.Fatal(err)
		}
		row := kinds.Service()
		if kind.Kind == "EndpointSlice" {
			row = kinds.EndpointSlice()
		}
		obj := row.New()
		if err := yaml.UnmarshalStrict([]byte(doc), obj); err != nil {
			t.Fatal(err)
		}
		switch o, _ := row.Decode(obj); o := o.(type) {
		case *cluster.Service:
			out.services = append(out.services, o)
		case *cluster.EndpointSlice:
			n := cluster.Name{Namespace: o.Name.Namespace, Name: o.Service}
			out.slices[n] = append(out.slices[n], o)
		}
	}
	return out
}

// Each testdata/NAME.in.yaml gives NAME.out.txt, in whatever order its services
// come.
func TestPlans(t *testing.T) {
	testkit.Golden(t, "testdata", 8, func(t *testing.T, raw []byte) string {
		d := decode(t, raw)
		got := text(t, d)
		for range 10 {
			rand.Shuffle(len(d.services), func(i, j int) { d.services[i], d.services[j] = d.services[j], d.services[i] })
			if again := text(t, d); again != got {
				t.Fatalf("in another order:\n%s\nbefore:\n%s", again, got)
			}
		}
		return got
	})
}

func text(t *testing.T, d decoded) string {
	t.Helper()
	plan, notes := serviceport.Plan(d.services, facts(d.slices), nodeConfig())
	var b strings.Builder
	for _, i := range plan.Host {
		changes, err := hostplan.ServiceChanges(i.(hostplan.ServicePorts), hostplan.ServicePorts{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, i)
		for _, line := range hostplan.ServiceChangeLines(changes) {
			fmt.Fprintln(&b, strings.TrimPrefix(line, "+ "))
		}
	}
	if away := serviceport.RemoteNodes(d.services, serviceport.Facts{Endpoints: d.slices}, nodeConfig()); len(away) > 0 {
		fmt.Fprintln(&b, "to be known are the addresses of", strings.Join(away, " "))
	}
	for _, n := range notes {
		fmt.Fprintf(&b, "note: %s: %s\n", n.Service, n.Message)
	}
	for _, c := range serviceport.Checks(d.services, serviceport.Facts{Endpoints: d.slices}, nodeConfig()) {
		fmt.Fprintf(&b, "health of %s at %d: %d endpoints\n", c.Service, c.Port, c.Endpoints)
	}
	return b.String()
}

// One service costs as many entries as it has ports and addresses, and one
// change changes one.
func TestCost(t *testing.T) {
	var list []*cluster.Service
	for i := range 10000 {
		list = append(list, &cluster.Service{
			Name:       cluster.Name{Namespace: fmt.Sprint("ns", i/5000), Name: fmt.Sprint("s", i)},
			ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i / 250), byte(i%250 + 1)})},
			Ports:      []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80, NodePort: uint16(20000 + i)}},
		})
	}
	item := func() hostplan.ServicePorts {
		plan, _ := serviceport.Plan(list, facts(nil), nodeConfig())
		return plan.Host[0].(hostplan.ServicePorts)
	}
	before := item()
	if n := strings.Count(before.Entries, "\n") + 1; n != 10000 {
		t.Errorf("%d entries for 10,000 node ports", n)
	}
	list[77].Ports[0].NodePort = 32000
	changes, err := hostplan.ServiceChanges(item(), before)
	if err != nil || len(changes) != 2 || changes[0].String() != "+ serve TCP 0.0.0.0:32000 to 10.96.0.78:80" ||
		changes[1].String() != "- serve TCP 0.0.0.0:20077 to 10.96.0.78:80" {
		t.Errorf("another node port: %v %v", changes, err)
	}
}

// Of many nodes with endpoints each node leads to few, and asks for the addresses
// of just these, however many services there are; other nodes lead to others.
func TestAwayFew(t *testing.T) {
	slices, used := serviceport.Slices{}, map[string]bool{}
	var list []*cluster.Service
	for i := range 5 {
		s := &cluster.Service{
			Name: cluster.Name{Namespace: "default", Name: fmt.Sprint("s", i)}, ExternalLocal: true,
			ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 0, byte(i + 1)})},
			Ports:      []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80, NodePort: uint16(30000 + i)}},
		}
		slice := &cluster.EndpointSlice{Service: s.Name.Name,
			Ports: []cluster.EndpointPort{{Protocol: cluster.TCP, Port: 8080}}}
		for n := range 500 {
			slice.Endpoints = append(slice.Endpoints,
				cluster.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 128, byte(n / 250), byte(n%250 + 1)}),
					Node: fmt.Sprint("with-", n), Conditions: cluster.Ready})
		}
		list, slices[s.Name] = append(list, s), []*cluster.EndpointSlice{slice}
	}
	for n := range 100 {
		away := serviceport.RemoteNodes(list, serviceport.Facts{Endpoints: slices}, named(fmt.Sprint("without-", n)))
		if len(away) != hostplan.RemoteBuckets {
			t.Fatalf("%d nodes, want %d", len(away), hostplan.RemoteBuckets)
		}
		for _, name := range away {
			used[name] = true
		}
	}
	if len(used) < 400 {
		t.Errorf("100 nodes lead to %d of 500 others, want most", len(used))
	}
	if away := serviceport.RemoteNodes(list, serviceport.Facts{Endpoints: slices}, named("with-7")); len(away) != 0 {
		t.Errorf("a node with endpoints of its own leads to %v", away)
	}
}

// What somebody has is served to nobody else, and what the node uses is exempt from all other entries. A service that
// exceeds the limits has no entries for external addresses; others have theirs.
func TestHeldAndHostile(t *testing.T) {
	addr := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	f := facts(nil)
	f.Uses = []netip.AddrPort{netip.MustParseAddrPort("172.18.0.9:6443"), netip.MustParseAddrPort("[fd18::9]:6642")}
	f.Held = map[netip.Addr]cluster.Holder{addr("172.18.0.9"): {As: cluster.HolderAPI},
		addr("fd18::7"): {As: cluster.HolderTunnel}}
	svc := func(name string, clusterIP string, external ...netip.Addr) *cluster.Service {
		return &cluster.Service{Name: cluster.Name{Namespace: "d", Name: name}, ClusterIPs: []netip.Addr{addr(clusterIP),
			addr("fd02::" + clusterIP[len("10.96.0."):])}, ExternalIPs: external,
			Ports: []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80, NodePort: 30080}}}
	}
	thief := svc("a-thief", "10.96.0.10", addr("172.18.0.9"), addr("fd18::7"), addr("10.128.9.9"), addr("192.0.2.1"))
	hostile := svc("hostile", "10.96.0.11")
	for i := range 500 {
		hostile.ExternalIPs = append(hostile.ExternalIPs, netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}))
	}
	for i := range 200 {
		hostile.Ports = append(hostile.Ports, cluster.ServicePort{Protocol: cluster.UDP, Port: uint16(1 + i)})
	}
	plan, notes := serviceport.Plan([]*cluster.Service{thief, hostile, svc("z", "10.96.0.12", addr("192.0.2.3"))}, f,
		nodeConfig())
	want := strings.Join([]string{"exempt TCP 172.18.0.9:6443", "exempt TCP [fd18::9]:6642",
		"serve TCP 0.0.0.0:30080 to 10.96.0.10:80", "serve TCP 192.0.2.1:80 to 10.96.0.10:80",
		"serve TCP 192.0.2.3:80 to 10.96.0.12:80", "serve TCP [::]:30080 to [fd02::10]:80"}, "\n")
	if got := plan.Host[0].(hostplan.ServicePorts).Entries; got != want {
		t.Errorf("entries\n%s\nwant\n%s", got, want)
	}
	told := fmt.Sprint(notes)
	for _, want := range []string{"172.18.0.9: it is an address of the API server", "fd18::7: it is the tunnel address",
		"10.128.9.9: it is for pods", "100904 addresses x ports, want at most --max-service-vips 4096"} {
		if strings.Count(told, want) != 1 {
			t.Errorf("notes %v, want %q in them once", told, want)
		}
	}
}

// Of a Service's source ranges those count that are within no other, in whatever order it has them. Thousands of them
// are soon looked through.
func TestSourceRanges(t *testing.T) {
	s := &cluster.Service{Name: cluster.Name{Namespace: "d", Name: "s"},
		ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")},
		Ports:      []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80}},
		Ingress:    []cluster.Ingress{{Addr: netip.MustParseAddr("192.0.2.1")}}}
	for _, r := range []string{"10.1.0.0/16", "10.1.2.0/24", "10.0.0.0/16", "10.1.2.3/32", "10.1.0.0/17", "fd00::/8",
		"10.2.0.0/24", "10.1.0.0/16"} {
		s.SourceRanges = append(s.SourceRanges, netip.MustParsePrefix(r))
	}
	entries := func() string {
		plan, _ := serviceport.Plan([]*cluster.Service{s}, facts(nil), nodeConfig())
		return plan.Host[0].(hostplan.ServicePorts).Entries
	}
	want := "allow TCP 192.0.2.1:80 from 10.0.0.0/16\nallow TCP 192.0.2.1:80 from 10.1.0.0/16\n" +
		"allow TCP 192.0.2.1:80 from 10.2.0.0/24\nlimit TCP 192.0.2.1:80\nserve TCP 192.0.2.1:80 to 10.96.0.1:80"
	if got := entries(); got != want {
		t.Errorf("entries\n%s\nwant\n%s", got, want)
	}
	s.SourceRanges = nil
	for i := range 4000 {
		s.SourceRanges = append(s.SourceRanges, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i)}), 24+i%9))
	}
	if got := strings.Count(entries(), "allow "); got != 4000 {
		t.Errorf("%d ranges, want all 4000", got)
	}
}

// A service of policy Local with very many places has one endpoint of the node at each.
func TestLocalAtManyPlaces(t *testing.T) {
	s := &cluster.Service{Name: cluster.Name{Namespace: "d", Name: "s"}, ExternalLocal: true,
		ClusterIPs:  []netip.Addr{netip.MustParseAddr("10.96.0.1")},
		ExternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	slice := &cluster.EndpointSlice{Service: "s", Endpoints: []cluster.Endpoint{
		{Addr: netip.MustParseAddr("10.128.2.3"), Node: "n1", Conditions: cluster.Ready},
		{Addr: netip.MustParseAddr("10.128.2.4"), Node: "n1", Conditions: cluster.Ready}}}
	for i := range 65 {
		name := fmt.Sprintf("p%02d", i)
		s.Ports = append(s.Ports, cluster.ServicePort{Name: name, Protocol: cluster.TCP, Port: uint16(1 + i)})
		slice.Ports = append(slice.Ports, cluster.EndpointPort{Name: name, Protocol: cluster.TCP, Port: 8080})
	}
	for ports, want := range map[int]int{64: 64 * (2 + hostplan.ServiceBuckets), 65: 65 * 3} {
		one := *s
		one.Ports = s.Ports[:ports]
		plan, _ := serviceport.Plan([]*cluster.Service{&one}, facts(serviceport.Slices{s.Name: {slice}}), nodeConfig())
		item := plan.Host[0].(hostplan.ServicePorts)
		if got := item.Count(); got != want {
			t.Errorf("%d ports have %d entries, want %d", ports, got, want)
		}
		for _, to := range []string{"10.128.2.3", "10.128.2.4"} {
			if n := strings.Count(item.Entries, "to "+to); n < ports/2 {
				t.Errorf("%d ports: %d entries lead to %s", ports, n, to)
			}
		}
	}
}

// While the services are not known, present entries stay, and what the node uses is exempt from them.
func TestPresent(t *testing.T) {
	uses := []netip.AddrPort{netip.MustParseAddrPort("172.18.0.9:6443")}
	have := hostplan.ServicePorts{Link: "m0", Ranges: "10.96.0.0/16",
		Entries: "exempt TCP 172.18.0.8:6443\nserve TCP 172.18.0.9:6443 to 10.96.0.10:80"}
	want := have
	want.Entries = "exempt TCP 172.18.0.8:6443\nexempt TCP 172.18.0.9:6443\nserve TCP 172.18.0.9:6443 to 10.96.0.10:80"
	if got := serviceport.Present([]hostplan.Item{have}, uses).Host; len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	have.Link = "" // another version's
	for _, have := range [][]hostplan.Item{nil, {have}} {
		if got := serviceport.Present(have, uses).Host; len(got) != 0 {
			t.Errorf("of %v: %+v, want nothing", have, got)
		}
	}
}

func TestParseServiceEntry(t *testing.T) {
	for _, line := range []string{
		"", "serve", "serve TCP 10.0.0.1:80", "serve TCP 10.0.0.1:80 to nowhere", "serve TCP 10.0.0.1 to 10.96.0.1:80",
		"local TCP 10.0.0.1:80", "local TCP 10.0.0.1:80 bucket 7 to 10.244.1.5:80", "share TCP 10.0.0.1:80 to 10.244.1.5:80",
		"stick TCP 10.0.0.1:80 bucket x to 10.244.1.5:80",
		"share TCP 10.0.0.1:80 bucket 7 to nowhere", "inside TCP 10.0.0.1:80 bucket 7",
		"serve TCP 10.0.0.1:80 bucket 7 to 10.96.0.1:80",
		"allow TCP 10.0.0.1:80 to 10.96.0.1:80", "allow TCP 10.0.0.1:80 from 10.96.0.1",
		"inside TCP 10.0.0.1:80 to 10.96.0.1:80", "other TCP 10.0.0.1:80",
		"away TCP 10.0.0.1:80 to 10.0.0.2:80", "away TCP 10.0.0.1:80 from 10.0.0.1/32",
		"away-share TCP 10.0.0.1:80 bucket 7 from 10.0.0.1/32 to 10.0.0.2:80",
		"away-stick TCP 10.0.0.1:80 from 10.0.0.1/32 to 10.0.0.2:80",
		"away TCP 10.0.0.1:80 from 10.0.0.1/32 to 10.0.0.2:80 or so",
	} {
		if e, err := hostplan.ParseServiceEntry(line); err == nil {
			t.Errorf("%q is read as %v", line, e)
		}
	}
}

// Ten thousand services of policy Local, each with three of a thousand nodes, of
// which this is none, in its own two families.
func BenchmarkPlanLocal(b *testing.B) {
	slices, list := serviceport.Slices{}, []*cluster.Service(nil)
	f := facts(slices)
	for i := range 10000 {
		name := cluster.Name{Namespace: "default", Name: fmt.Sprint("s", i)}
		list = append(list, &cluster.Service{
			Name: name, ExternalLocal: true,
			Ports: []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80, NodePort: uint16(20000 + i)}},
			ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i / 250), byte(i%250 + 1)}),
				netip.MustParseAddr(fmt.Sprintf("fd02::%x", i+1))},
		})
		for _, prefix := range []string{"::ffff:10.128.0.0", "fd01::"} {
			slice := &cluster.EndpointSlice{Service: name.Name,
				Ports: []cluster.EndpointPort{{Protocol: cluster.TCP, Port: 8080}}}
			for n := range 3 {
				a := netip.MustParseAddr(prefix).As16()
				a[14], a[15] = byte(i%1000/250), byte(i%250+n+1)
				slice.Endpoints = append(slice.Endpoints,
					cluster.Endpoint{Addr: netip.AddrFrom16(a).Unmap(), Node: fmt.Sprint("with-", (i*3+n*7)%1000),
						Conditions: cluster.Ready})
			}
			slices[name] = append(slices[name], slice)
		}
	}
	away := serviceport.RemoteNodes(list, serviceport.Facts{Endpoints: slices}, nodeConfig())
	for i, name := range away {
		f.Nodes[name] = []netip.Addr{netip.AddrFrom4([4]byte{172, 18, byte(i / 250), byte(i%250 + 1)}),
			netip.MustParseAddr(fmt.Sprintf("fd18::%x", i+1))}
	}
	b.Run("Away", func(b *testing.B) {
		for b.Loop() {
			serviceport.RemoteNodes(list, serviceport.Facts{Endpoints: slices}, nodeConfig())
		}
		b.ReportMetric(float64(len(away)), "nodes")
	})
	b.Run("Plan", func(b *testing.B) {
		entries := 0
		for b.Loop() {
			plan, _ := serviceport.Plan(list, f, nodeConfig())
			entries = plan.Host[0].(hostplan.ServicePorts).Count()
		}
		b.ReportMetric(float64(entries), "entries")
	})
}

// What the namespace of a service leaves it, the node serves, as the load balancers do.
func TestNamespaceLimit(t *testing.T) {
	c := nodeConfig()
	c.Services.MaxNamespaceVIPs = 5
	var list []*cluster.Service
	for i := range 3 {
		list = append(list, &cluster.Service{
			Name: cluster.Name{Namespace: "shop", Name: fmt.Sprint("s", i)}, Created: int64(10 - i),
			ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 0, byte(i + 1)})},
			Ports:      []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80, NodePort: uint16(30000 + i)}},
		})
	}
	plan, notes := serviceport.Plan(list, facts(nil), c)
	entries := plan.Host[0].(hostplan.ServicePorts).Entries
	for i, want := range []bool{false, true, true} {
		if got := strings.Contains(entries, fmt.Sprint(":", 30000+i)); got != want {
			t.Errorf("service %d has its node port: %v, want %v", i, got, want)
		}
	}
	if len(notes) != 1 || notes[0].Service.Name != "s0" ||
		!strings.HasSuffix(notes[0].Message, "want at most --max-namespace-vips 5: only its ClusterIPs are served") {
		t.Errorf("notes %+v", notes)
	}
}
