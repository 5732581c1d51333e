package byhand

import (
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/show"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// zoned is a real database of a cluster of Kubernetes, of which the commands know
// nothing: with zones, ranges of ClusterIPs that are not the default, and these
// nodes set up by hand besides.
func zoned(t *testing.T, byHand ...cluster.Object) (remote string) {
	t.Helper()
	c := config.DefaultCluster()
	c.Subnets, c.RouterName = zonedSubnets(t), "kube-master"
	c.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("172.30.0.0/16")}
	want := offline.New(c, append(byHand,
		&cluster.Node{Name: "n1", UID: "u-1", Zone: "a"}, &cluster.Node{Name: "n2", UID: "u-2", Zone: "b"},
		&cluster.ServiceCIDR{Name: "more", CIDRs: []netip.Prefix{netip.MustParsePrefix("172.31.0.0/24")}}))
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

func zonedSubnets(t *testing.T) []config.ClusterSubnet {
	t.Helper()
	subnets, err := config.ParseClusterSubnets("10.244.0.0/16/24")
	if err != nil {
		t.Fatal(err)
	}
	return subnets
}

// alone is a command on a machine that knows of no API server.
func alone(t *testing.T, remote, node string) Setup {
	t.Helper()
	s := Setup{NB: config.OVSDB{Addresses: []string{remote}}, Cluster: config.DefaultCluster(), Node: config.DefaultNode(),
		Out: io.Discard, Log: slog.New(slog.DiscardHandler)}
	s.Cluster.Subnets, s.Node.Name = zonedSubnets(t), node
	return s
}

// groups are the groups of load balancers that a switch carries, by name.
func groups(t *testing.T, remote, node string) string {
	t.Helper()
	var out []string
	for _, uuid := range strings.Fields(testkit.Run(t, "ovn-nbctl", "--db="+remote, "--bare",
		"--columns=load_balancer_group", "list", "Logical_Switch", node)) {
		out = append(out, strings.TrimSpace(testkit.Run(t, "ovn-nbctl", "--db="+remote, "get", "Load_Balancer_Group", uuid,
			"name")))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// What a command can't know without Kubernetes, it leaves as it is: which groups
// a switch is in, and which ranges of ClusterIPs there are.
func TestRowsOfKubernetesStay(t *testing.T) {
	node := &cluster.Node{Name: "kube-node1", ByHand: true, ChassisID: "c-1",
		Annotated: `{"default":["10.244.9.0/24"]}`}
	remote := zoned(t, node)
	acls := func() string {
		return testkit.Run(t, "ovn-nbctl", "--db="+remote, "acl-list", "kube-node1")
	}
	before := acls()
	if !strings.Contains(before, "ip4.src == {10.244.9.2, 172.30.0.0/16, 172.31.0.0/24}") {
		t.Fatalf("the node begins with the ACLs\n%s", before)
	}
	err := alone(t, remote, "kube-node1").north(t.Context(), false, func(n *cluster.Node, _ []netip.Prefix) error {
		n.Gateway = &annotation.L3Gateway{Bridge: "breth0", Network: "physnet", Port: "breth0_kube-node1",
			MAC:      ipnet.MAC{2},
			IPs:      []netip.Prefix{netip.MustParsePrefix("172.18.0.3/16")},
			NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := testkit.Run(t, "ovn-nbctl", "--db="+remote, "--bare", "--columns=name", "find", "Logical_Router",
		"name=GR_kube-node1"); strings.TrimSpace(got) == "" {
		t.Error("there is no gateway router")
	}
	if got := groups(t, remote, "kube-node1"); got != "clusterLBGroup zoneLBGroup_-" {
		t.Errorf("the switch carries %s", got)
	}
	if got := acls(); got != before {
		t.Errorf("the ACLs are\n%s\nand were\n%s", got, before)
	}
}

// master-init again keeps what the ranges are for that the API has besides those
// of its flag; of a range that neither has nothing stays.
func TestRangesOfTheAPI(t *testing.T) {
	node := &cluster.Node{Name: "kube-master", ByHand: true, ChassisID: "c-1",
		Annotated: `{"default":["10.244.9.0/24"]}`}
	remote := zoned(t, node)
	content := func() string {
		return testkit.Run(t, "ovn-nbctl", "--db="+remote, "acl-list", "kube-master") + testkit.Run(t, "ovn-nbctl",
			"--db="+remote, "lr-policy-list", "kube-master")
	}
	before := content()
	s := alone(t, remote, "kube-master")
	s.Cluster.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("172.30.0.0/16")}
	for _, c := range []struct {
		ranges []netip.Prefix
		want   string
	}{
		{[]netip.Prefix{netip.MustParsePrefix("172.31.0.0/24"), netip.MustParsePrefix("172.30.0.0/16")}, before},
		{nil, ""},
	} {
		s.kube = &kube{asked: true, ranges: c.ranges}
		if err := s.north(t.Context(), true, func(*cluster.Node, []netip.Prefix) error { return nil }); err != nil {
			t.Fatal(err)
		}
		got := content()
		if c.want != "" && got != c.want || strings.Contains(got, "172.31.0.0/24") != (c.want != "") {
			t.Errorf("with the API's ranges %v there is\n%s\nbefore\n%s", c.ranges, got, before)
		}
	}
}

// The first node in no zone, among others that are in some, brings the group of
// such nodes, without which its switch would be refused; the last takes it away.
func TestFirstNodeInNoZone(t *testing.T) {
	remote := zoned(t)
	if got := groups(t, remote, "n1"); got != "clusterLBGroup zoneLBGroup_a" {
		t.Fatalf("n1 begins with %s", got)
	}
	names := func() string {
		list := strings.Fields(testkit.Run(t, "ovn-nbctl", "--db="+remote, "--bare", "--columns=name", "list",
			"Load_Balancer_Group"))
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	late := alone(t, remote, "late")
	err := late.north(t.Context(), false, func(n *cluster.Node, _ []netip.Prefix) error {
		n.Annotated, n.ChassisID = `{"default":["10.244.9.0/24"]}`, "c-9"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := groups(t, remote, "late"); got != "clusterLBGroup zoneLBGroup_-" {
		t.Errorf("the switch carries %s", got)
	}
	if got := names(); got != "clusterLBGroup zoneLBGroup_- zoneLBGroup_a zoneLBGroup_b" {
		t.Errorf("groups %s", got)
	}
	if err := late.northUndo(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "clusterLBGroup zoneLBGroup_a zoneLBGroup_b" {
		t.Errorf("groups after the undoing: %s", got)
	}
}
