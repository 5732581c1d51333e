package reach_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/reach"
)

// tenants is a cluster with the primary networks red/own and blue/own, of the same range, a pod of the cluster's own
// network, and the cluster's DNS. red/b admits nobody. With admits, the pod of DNS admits that range alone.
func tenants(t *testing.T, admits string, more ...cluster.Object) *reach.Cluster {
	t.Helper()
	name := func(namespace, name string) cluster.Name { return cluster.Name{Namespace: namespace, Name: name} }
	isolated := cluster.NewLabelSelector(cluster.Requirement{Key: "isolated", Operator: cluster.Exists})
	objects := append([]cluster.Object{
		&cluster.Node{Name: "n1", UID: "u1", Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
		&cluster.Namespace{Name: "plain"}, &cluster.Namespace{Name: "kube-system"},
		&cluster.NetworkPolicy{Name: name("red", "closed"), Pods: isolated, Ingress: cluster.PolicyRules{Isolates: true}},
		&cluster.Service{Name: cluster.DNSService(), UID: "dns", ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10")},
			Ports: []cluster.ServicePort{{Name: "dns", Protocol: cluster.UDP, Port: 53}}}}, more...)
	for _, namespace := range []string{"red", "blue"} {
		n := &cluster.Network{Name: names.Defined(namespace, "own"), Topology: cluster.Layer2, Primary: true,
			Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/16")}}}
		if err := n.SetJoin([]netip.Prefix{netip.MustParsePrefix("100.66.0.0/15")}); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &cluster.NetworkDefinition{Name: name(namespace, "own"), Network: n, UID: namespace},
			&cluster.Namespace{Name: namespace, Labels: cluster.NewLabels(map[string]string{names.PrimaryLabel: ""})})
	}
	for _, p := range []cluster.Name{name("kube-system", "dns"), name("red", "a"), name("red", "b"), name("blue", "a"),
		name("plain", "p")} {
		labels := map[string]string{}
		if p.Name == "b" {
			labels["isolated"] = ""
		}
		objects = append(objects, &cluster.Pod{Name: p, UID: p.String(), Node: "n1", Labels: cluster.NewLabels(labels)})
	}
	if admits != "" {
		objects = append(objects, &cluster.NetworkPolicy{Name: name("kube-system", "dns"),
			Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{AnyPort: true,
				Peers: []cluster.PolicyPeer{{Addresses: []netip.Prefix{netip.MustParsePrefix(admits)}}}}}}})
	}
	dns := cluster.PodPort{Pod: name("kube-system", "dns")}
	at := offline.New(config.DefaultCluster(), objects).State.PodNetworks[dns].IPs[0].Addr()
	made := offline.New(config.DefaultCluster(), append(objects, &cluster.EndpointSlice{Name: dns.Pod, Service: "kube-dns",
		Ports: []cluster.EndpointPort{{Name: "dns", Protocol: cluster.UDP, Port: 5353}}, Endpoints: []cluster.Endpoint{
			{Addr: at, Pod: dns.Pod.Name, Node: "n1", Conditions: cluster.Ready | cluster.Serving}}}))
	db, errs := made.Database()
	if len(errs)+len(made.Problems) > 0 {
		t.Fatal(errs, made.Problems)
	}
	return reach.New(made.Core, db)
}

// answer is the first answer to a question.
func answer(t *testing.T, c *reach.Cluster, from, to string) reach.Answer {
	t.Helper()
	q, err := reach.Ask(from, to)
	if err != nil {
		t.Fatal(err)
	}
	check, err := c.Check(q)
	if err != nil {
		t.Fatal(err)
	}
	return check.Connections[0].Answers[0]
}

// Two pods are judged by the policies of the network that both are in. Other networks can't be reached.
func TestPrimaryNetworks(t *testing.T) {
	for _, c := range []struct {
		from, to string
		allowed  bool
		why      string // some of the answer
	}{
		{"red/b", "red/a:80", true, "no policy with Egress selects it; ingress: no policy selects it"},
		{"red/a", "red/b:80", false, "isolated by np/red/closed, and no rule allows this"},
		{"red/a", "10.77.0.3:80", false, "isolated by np/red/closed"},
		{"10.77.0.3", "red/a:80", true, "no policy selects it"},
		{"10.77.0.9", "red/a:80", true, "no pod has the address"},
		{"red/a", "10.77.0.9:80", true, "no pod has the address"},
		{"red/a", "blue/a:80", false, "red/a is in the primary network red/own, pod/blue/a in the primary network blue/own"},
		{"plain/p", "red/a:80", false, "which nothing connects: pod/plain/p is in the cluster's own network"},
		{"red/a", "plain/p:80", false, "which nothing connects"},
		{"red/a", "203.0.113.1:80", true, "outside the cluster: no policy selects it"},
		{"203.0.113.1", "red/a:80", false, "only Services with node ports lead from outside to the primary network red/own"},
		{"red/a", "10.128.0.77:80", false, "to nothing of the cluster's own network but the Kubernetes API and DNS"},
		{"red/a", "192.0.2.1:22", true, "a node's host: no policy selects it"},
		{"node/n1", "red/b:80", true, "its own node may always connect to it"},
		{"red/a", "svc/kube-system/kube-dns", true, "no policy selects it"},
	} {
		got := answer(t, tenants(t, ""), c.from, c.to)
		if got.Allowed != c.allowed || !strings.Contains(got.String(), c.why) {
			t.Errorf("%s to %s: %s, want %v: %s", c.from, c.to, got, c.allowed, c.why)
		}
	}
}

// The pods of DNS see an exit's address, which their policies may name.
func TestDNSSeesExits(t *testing.T) {
	exits := tenants(t, "").State.In(names.Defined("red", "own")).ExitAddrs["n1"]
	for admits, want := range map[string]bool{ipnet.Addrs(exits)[0].String() + "/32": true, "10.77.0.0/16": false} {
		got := answer(t, tenants(t, admits), "red/a", "svc/kube-system/kube-dns")
		if got.Allowed != want || !got.Egress.Allowed {
			t.Errorf("the pod of DNS admits %s: %s, want allowed %v", admits, got, want)
		}
	}
}

// A client outside keeps its address if a Service has externalTrafficPolicy Local. Others have that of an exit.
func TestLocalServiceOfPrimaryNetwork(t *testing.T) {
	only := func(admits string) *cluster.NetworkPolicy {
		return &cluster.NetworkPolicy{Name: cluster.Name{Namespace: "red", Name: "only"},
			Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{AnyPort: true,
				Peers: []cluster.PolicyPeer{{Addresses: []netip.Prefix{netip.MustParsePrefix(admits)}}}}}}}
	}
	pod := cluster.PodPort{Pod: cluster.Name{Namespace: "red", Name: "a"}}
	at := tenants(t, "").State.PodNetworks[pod].IPs[0].Addr()
	slice := &cluster.EndpointSlice{Name: cluster.Name{Namespace: "red", Name: "web"}, Service: "web",
		Ports: []cluster.EndpointPort{{Protocol: cluster.TCP, Port: 8080}}, Endpoints: []cluster.Endpoint{
			{Addr: at, Pod: "a", Node: "n1", Conditions: cluster.Ready | cluster.Serving}}}
	for _, c := range []struct {
		local   bool
		admits  string
		from    string
		allowed bool
	}{
		{true, "203.0.113.0/24", "203.0.113.1", true},
		{true, "100.66.0.0/15", "203.0.113.1", false},
		{true, "100.66.0.0/15", "plain/p", true},
		{true, "100.66.0.0/15", "blue/a", true},
		{false, "203.0.113.0/24", "203.0.113.1", false},
		{false, "100.66.0.0/15", "203.0.113.1", true},
	} {
		svc := &cluster.Service{Name: slice.Name, UID: "web", ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.20")},
			ExternalLocal: c.local, Ports: []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80, NodePort: 30080}}}
		if got := answer(t, tenants(t, "", svc, slice, only(c.admits)), c.from, "svc/red/web"); got.Allowed != c.allowed {
			t.Errorf("local %v, %s admitted: %s: %s, want allowed %v", c.local, c.admits, c.from, got, c.allowed)
		}
	}
}

// A ClusterNetworkPolicy decides in a primary network as it does in the cluster's own, and so does a policy of the
// network.
func TestPoliciesOfPrimaryNetworks(t *testing.T) {
	everybody := cluster.PolicyRule{Peers: []cluster.PolicyPeer{{Pods: &cluster.PodSelector{}}}, AnyPort: true}
	guard := &cluster.TieredPolicy{Name: "guard", UID: "u", Tier: cluster.AdminTier,
		Egress: []cluster.TieredRule{{Action: cluster.Deny, PolicyRule: everybody}}}
	closed := &cluster.MultiNetworkPolicy{NetworkPolicy: cluster.NetworkPolicy{UID: "m",
		Name: cluster.Name{Namespace: "red", Name: "m"}, Egress: cluster.PolicyRules{Isolates: true}},
		Named: []names.Network{names.Defined("red", "own")}, Networks: []names.Network{names.Defined("red", "own")}}
	for _, c := range []struct {
		policy   cluster.Object
		from, to string
		why      string
	}{
		{guard, "red/a", "red/b:80", "egress: cnp/guard spec.egress[0]"},
		{guard, "red/a", "svc/kube-system/kube-dns", "egress: cnp/guard spec.egress[0]"},
		{guard, "plain/p", "kube-system/dns:80", "egress: cnp/guard spec.egress[0]"},
		{closed, "red/a", "203.0.113.1:80", "egress: isolated by multinetworkpolicy/red/m, and no rule allows this"},
	} {
		if got := answer(t, tenants(t, "", c.policy), c.from, c.to); got.Allowed || !strings.Contains(got.String(), c.why) {
			t.Errorf("%s to %s: %s, want denied: %s", c.from, c.to, got, c.why)
		}
	}
	if got := answer(t, tenants(t, "", guard), "red/a", "203.0.113.1:80"); !got.Allowed {
		t.Errorf("to the outside: %s", got)
	}
}

// A pod of a primary network that opens ports lets pods and nodes of the cluster's own network in there, unless a
// ClusterNetworkPolicy denies it. Otherwise its interface stays as locked as that of others.
func TestOpenPorts(t *testing.T) {
	opener := &cluster.Pod{Name: cluster.Name{Namespace: "red", Name: "open"}, UID: "open", Node: "n1",
		Labels: cluster.NewLabels(map[string]string{"open": ""}),
		Opens:  cluster.NewOpenPorts([]cluster.OpenPort{{Protocol: "tcp", Number: 9090}, {Protocol: "tcp", Number: 80}})}
	plain := &cluster.Pod{Name: cluster.Name{Namespace: "plain", Name: "q"}, UID: "q", Node: "n1", Opens: opener.Opens}
	everybody := cluster.PolicyRule{Peers: []cluster.PolicyPeer{{Pods: &cluster.PodSelector{}}}, AnyPort: true}
	rules := func(a cluster.PolicyAction) *cluster.TieredPolicy {
		return &cluster.TieredPolicy{Name: "guard", UID: "u", Tier: cluster.AdminTier,
			Pods: cluster.PodSelector{Pods: cluster.NewLabelSelector(cluster.Requirement{Key: "open",
				Operator: cluster.Exists})},
			Ingress: []cluster.TieredRule{{Action: a, PolicyRule: everybody}},
			Egress:  []cluster.TieredRule{{Action: a, PolicyRule: everybody}}}
	}
	baseline := rules(cluster.Deny)
	baseline.Tier = cluster.BaselineTier
	for _, c := range []struct {
		policy   *cluster.TieredPolicy
		from, to string
		allowed  bool
		why      string
	}{
		{nil, "plain/p", "red/open:9090", true, "the pod opens it: annotation k8s.ovn.org/open-default-ports"},
		{nil, "plain/p", "red/open:80", true, "the pod opens it"},
		{nil, "plain/p", "red/open:81", false, "it is in a primary network"},
		{nil, "plain/p", "red/open:80/UDP", false, "it is in a primary network"},
		{nil, "node/n1", "red/open:81", true, "its own node may always connect to it"},
		{nil, "red/a", "red/open:81", true, "no policy selects it"}, // within the primary network
		{nil, "blue/a", "red/open:9090", false, "which nothing connects"},
		{nil, "red/open", "plain/p:80", false, "which nothing connects"},
		{nil, "plain/p", "plain/q:81", true, "no policy selects it"}, // for others the annotation says nothing
		{rules(cluster.Deny), "plain/p", "red/open:9090", false, "cnp/guard spec.ingress[0]"},
		{rules(cluster.Pass), "plain/p", "red/open:9090", true, "the pod opens it"},
		{rules(cluster.Pass), "plain/p", "red/open:81", false, "it is in a primary network"},
		{rules(cluster.Accept), "plain/p", "red/open:81", true, "cnp/guard spec.ingress[0]"},
		{baseline, "plain/p", "red/open:9090", true, "the pod opens it"},
	} {
		more := []cluster.Object{opener, plain}
		if c.policy != nil {
			more = append(more, c.policy)
		}
		if got := answer(t, tenants(t, "", more...), c.from, c.to); got.Allowed != c.allowed ||
			!strings.Contains(got.String(), c.why) {
			t.Errorf("%v: %s to %s: %s, want %v: %s", c.policy != nil, c.from, c.to, got, c.allowed, c.why)
		}
	}
}

// A matrix has what pods open, for the pods of the cluster's own network alone, and a comparison what they open more.
func TestOpenPortsInMatrix(t *testing.T) {
	opens := func(ports ...uint16) *reach.Cluster {
		opener := &cluster.Pod{Name: cluster.Name{Namespace: "red", Name: "open"}, UID: "open", Node: "n1"}
		var list []cluster.OpenPort
		for _, number := range ports {
			list = append(list, cluster.OpenPort{Protocol: "tcp", Number: number})
		}
		opener.Opens = cluster.NewOpenPorts(list)
		return tenants(t, "", opener)
	}
	m, err := opens(80, 9090).Matrix(nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range m.Cells {
		if strings.HasPrefix(c.To, "red") && c.To != c.From {
			got = append(got, c.From+" to "+c.To+": "+c.Ports)
		}
	}
	want := []string{
		"blue to red (as red/a): none", "blue to red (as red/open): none", "blue to red isolated=: none",
		"kube-system, plain to red (as red/a): none", "kube-system, plain to red (as red/open): tcp/80,9090",
		"kube-system, plain to red isolated=: none",
		"outside to red (as red/a): none", "outside to red (as red/open): none", "outside to red isolated=: none",
		"red (as red/a) to red (as red/open): all", "red (as red/a) to red isolated=: none",
		"red (as red/open) to red (as red/a): all", "red (as red/open) to red isolated=: none",
		"red isolated= to red (as red/a): all", "red isolated= to red (as red/open): all",
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the matrix has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	d, err := opens(80, 9090).DiffFrom(opens(80), nil)
	if err != nil {
		t.Fatal(err)
	}
	gained := []reach.Cell{{From: "kube-system, plain", To: "red (as red/open)", Ports: "tcp/9090"}}
	if !slices.Equal(d.Gained, gained) || len(d.Lost) > 0 {
		t.Errorf("gained %v and lost %v, want %v and nothing", d.Gained, d.Lost, gained)
	}
}

// A line about a NetworkPolicy in a primary network is about addresses there. What is outside of its ranges is told as
// everywhere.
func TestLoggedInPrimaryNetworks(t *testing.T) {
	c := tenants(t, "")
	const line = `name="NP:red/closed:ingress:deny", verdict=drop, severity=info, direction=to-lport: tcp,nw_src=%s,` +
		`nw_dst=10.77.0.3,tp_src=40000,tp_dst=80`
	for from, want := range map[string]string{
		"10.77.0.2": "pod/red/a", "10.77.0.99": "nobody", "203.0.113.1": "outside", "192.0.2.1": "node/n1",
	} {
		got, err := c.Logged(fmt.Sprintf(line, from))
		if err != nil {
			t.Fatal(err)
		}
		if got.From.Name != want || got.To.Name != "pod/red/b" {
			t.Errorf("from %s: %s to %s, want %s to pod/red/b", from, got.From, got.To, want)
		}
	}
}
