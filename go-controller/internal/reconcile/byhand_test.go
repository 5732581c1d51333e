package reconcile

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/show"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// byHandNode is a node that was set up by hand.
func byHandNode(name, subnet, subnet6 string) *cluster.Node {
	return &cluster.Node{Name: name, ByHand: true, ChassisID: "chassis-" + name,
		Annotated: annotation.MarshalNodeSubnets([]netip.Prefix{netip.MustParsePrefix(subnet),
			netip.MustParsePrefix(subnet6)})}
}

// byHandDatabase is a real server with a cluster that was set up by hand.
func byHandDatabase(t *testing.T, nodes ...cluster.Object) (remote string) {
	t.Helper()
	c := bedConfig()
	c.RouterName, c.RouterNamed = "kube-master", true
	want := offline.New(c, nodes)
	db, errs := want.Database()
	if len(errs)+len(want.Problems) != 0 {
		t.Fatal(errs, want.Problems)
	}
	var b strings.Builder
	if err := show.Write(&b, show.OVSDB, want.Schema, db); err != nil {
		t.Fatal(err)
	}
	return testkit.ServeOVSDB(t, b.String(), "")
}

// The master keeps a cluster that was set up by hand.
func TestByHandClusterStays(t *testing.T) {
	gateway := byHandNode("kube-node1", "10.244.0.0/24", "fd01:0:0:0::/64")
	gateway.Gateway = &annotation.L3Gateway{Bridge: "breth0", Network: "physnet", Port: "breth0_kube-node1",
		MAC:      ipnet.MAC{2, 0x42, 0xac, 0x12, 0, 3},
		IPs:      []netip.Prefix{netip.MustParsePrefix("172.18.0.3/16")},
		NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")}}
	gateway.JoinAnnotated = `{"default":{"ipv4":"100.64.1.2/24","ipv6":"fd98::2/64"}}`
	remote := byHandDatabase(t, byHandNode("kube-master", "10.244.1.0/24", "fd01:0:0:1::/64"), gateway)
	b := startBed(t, remote, newFeed(&cluster.Namespace{Name: "default"}, &cluster.Node{Name: "n1", UID: "u-n1"}))
	if got := b.nbctl("--bare", "--columns=name", "list", "Logical_Router"); !strings.Contains(got, "kube-master") ||
		!strings.Contains(got, "GR_kube-node1") {
		t.Errorf("routers %q, want those that were set up by hand", got)
	}
	b.eventually("switches", "ext_kube-node1 join kube-master kube-node1 n1", b.names("Logical_Switch"))
	if got := b.nbctl("get", "Logical_Switch", "n1", "other_config:subnet"); got != `"10.244.2.0/24"` {
		t.Errorf("the subnet of n1 is %s, want the first that is free", got)
	}
	b.nbctl("lsp-del", "k8s-kube-master")
	b.nbctl("lrp-del", "rtoe-GR_kube-node1")
	b.eventually("the ports that were deleted", "k8s-kube-master rtoe-GR_kube-node1", func() string {
		ports := b.names("Logical_Switch_Port")() + " " + b.names("Logical_Router_Port")()
		var found []string
		for _, p := range []string{"k8s-kube-master", "rtoe-GR_kube-node1"} {
			if strings.Contains(ports, p) {
				found = append(found, p)
			}
		}
		return strings.Join(found, " ")
	})
}

// The master also keeps what is set up by hand while it runs. When the node's switch is deleted, it deletes the rest.
func TestByHandWhileTheMasterRuns(t *testing.T) {
	remote := byHandDatabase(t, byHandNode("kube-master", "10.244.1.0/24", "fd01:0:0:1::/64"))
	b := startBed(t, remote, newFeed(&cluster.Namespace{Name: "default"}))
	late := byHandNode("late", "10.244.9.0/24", "fd01:0:0:9::/64")
	session := b.loop.Database.Session()
	want := offline.New(bedConfig(), []cluster.Object{late})
	owner := nb.Owner{Kind: "Node", Name: "late"}
	p, err := want.Compare(session.View(), owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Transact(t.Context(), []nb.Plan{p}); err != nil {
		t.Fatal(err)
	}
	b.feed.put(&cluster.Node{Name: "n1", UID: "u-n1"}) // something to wait for
	b.eventually("switches", "join kube-master late n1", b.names("Logical_Switch"))
	b.nbctl("ls-del", "late")
	b.eventually("router ports", "rtoj-kube-master rtos-kube-master rtos-n1", b.names("Logical_Router_Port"))
}

// The Node object adopts what was set up by hand under its name, whether it is added while the master runs or existed
// before.
func TestNodeInheritsWhatWasSetUpByHand(t *testing.T) {
	node := &cluster.Node{Name: "kube-node1", UID: "u-1"}
	for when, first := range map[string][]cluster.Object{"later": nil, "before the master": {node}} {
		t.Run(when, func(t *testing.T) { inherits(t, node, first...) })
	}
}

func inherits(t *testing.T, node *cluster.Node, first ...cluster.Object) {
	t.Helper()
	remote := byHandDatabase(t, byHandNode("kube-node1", "10.244.7.0/24", "fd01:0:0:7::/64"))
	b := startBed(t, remote, newFeed(append(first, &cluster.Namespace{Name: "default"})...))
	if len(first) == 0 {
		b.feed.put(node)
	}
	b.eventually("the Node's annotations", `{"k8s.ovn.org/node-chassis-id":"chassis-kube-node1",`+
		`"k8s.ovn.org/node-subnets":{"default":["10.244.7.0/24","fd01:0:0:7::/64"]}}`, func() string {
		b.feed.mu.Lock()
		defer b.feed.mu.Unlock()
		n, _ := b.feed.objects[cluster.Ref{Kind: cluster.KindNode, Name: cluster.Name{Name: "kube-node1"}}].(*cluster.Node)
		return n.ByHandRecord()
	})
	b.eventually("the switch's record", "", func() string {
		return b.nbctl("--if-exists", "get", "Logical_Switch", "kube-node1", "external_ids:\"k8s.ovn.org/by-hand\"")
	})
	b.eventually("switches", "join kube-node1", b.names("Logical_Switch"))
	if got := b.nbctl("get", "Logical_Switch", "kube-node1", "other_config:subnet"); got != `"10.244.7.0/24"` {
		t.Errorf("the subnet is %s, want what it was", got)
	}
}

// A damaged record is reported, and stops nothing else.
func TestSpoiledByHandRecord(t *testing.T) {
	remote := byHandDatabase(t, byHandNode("kube-node1", "10.244.7.0/24", "fd01:0:0:7::/64"))
	testkit.Run(t, "ovn-nbctl", "--db="+remote, "set", "Logical_Switch", "kube-node1",
		`external_ids:"k8s.ovn.org/by-hand"=garbage`)
	b := startBed(t, remote, newFeed(&cluster.Namespace{Name: "default"}, &cluster.Node{Name: "n1", UID: "u-n1"}))
	if got := b.nbctl("get", "Logical_Switch", "kube-node1", "other_config:subnet"); got != `"10.244.7.0/24"` {
		t.Errorf("the subnet is %s, want what it was", got)
	}
	b.feed.mu.Lock()
	defer b.feed.mu.Unlock()
	if len(b.feed.problems) == 0 || b.feed.problems[0].Reason != cluster.ReasonByHandRefused ||
		!strings.Contains(b.feed.problems[0].Message, `"garbage"`) {
		t.Errorf("problems %v, want one of the record", b.feed.problems)
	}
}

// A record that is damaged while the master runs is written again.
func TestByHandRecordSpoiledLater(t *testing.T) {
	remote := byHandDatabase(t, byHandNode("kube-node1", "10.244.7.0/24", "fd01:0:0:7::/64"))
	b := startBed(t, remote, newFeed(&cluster.Namespace{Name: "default"}))
	record := func() string {
		return b.nbctl("get", "Logical_Switch", "kube-node1", `external_ids:"k8s.ovn.org/by-hand"`)
	}
	want := record()
	b.nbctl("set", "Logical_Switch", "kube-node1", `external_ids:"k8s.ovn.org/by-hand"=garbage`)
	b.eventually("the record", want, record)
}
