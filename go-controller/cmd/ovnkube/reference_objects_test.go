package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// annotationText is an annotation as the page describes it.
type annotationText struct {
	key, writer, what string
	examples          []string // printed by the code that writes it
}

func annotationTexts() []annotationText {
	v4, v6 := netip.MustParsePrefix("10.244.1.3/24"), netip.MustParsePrefix("fd00:10:244:1::3/64")
	gateway4, gateway6 := netip.MustParseAddr("10.244.1.1"), netip.MustParseAddr("fd00:10:244:1::1")
	mac := ipnet.MAC{0x0a, 0x58, 0x0a, 0xf4, 0x01, 0x03}
	single := annotation.PodNetwork{IPs: []netip.Prefix{v4}, MAC: mac, Gateways: []netip.Addr{gateway4}}
	dual := annotation.PodNetwork{IPs: []netip.Prefix{v4, v6}, MAC: mac, Gateways: []netip.Addr{gateway4, gateway6}}
	gateway := &annotation.L3Gateway{
		Bridge: "breth0", Network: annotation.DefaultPhysicalNetwork, Port: "breth0_n1", MAC: ipnet.MAC{0x02, 0x42, 0xac, 0x12, 0x00, 0x03},
		IPs:      []netip.Prefix{netip.MustParsePrefix("172.18.0.3/16")},
		NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")}, NodePort: true, MTU: 1500, PodMTU: 1442,
	}
	out := *gateway
	out.Out = "ovn-controller does not answer"
	return []annotationText{
		{annotation.PodNetworks, "the master, on the Pod", "The pod's addresses, MAC and gateways. It is the record of the allocation. " +
			"A pod with one address family also has `ip_address` and `gateway_ip`, for older readers.",
			[]string{annotation.MarshalPodNetworks(single), annotation.MarshalPodNetworks(dual)}},
		{annotation.PodClassic, "the master, on the Pod", "The same in the classic form, which has room for the first address. " +
			"The master writes it in one patch with the annotation above.",
			[]string{annotation.MarshalPodClassic(single)}},
		{annotation.NodeSubnets, "the master, on the Node", "The node's subnets, one per address family. It is the record of the allocation.",
			[]string{annotation.MarshalNodeSubnets([]netip.Prefix{v4.Masked(), v6.Masked()})}},
		{annotation.NodeChassisID, "the node agent, on the Node", "The node's OVN chassis: `external_ids:system-id` of its Open_vSwitch row.",
			[]string{names.SystemID("n1")}},
		{annotation.NodeMgmtPortMAC, "the node agent, on the Node", "The MAC address of the node's management port.",
			[]string{annotation.MarshalNodeMgmtPortMAC(mac)}},
		{annotation.NodePrimaryIfAddr, "the node agent, on the Node", "The node's own addresses, with prefix lengths.",
			[]string{annotation.MarshalNodePrimaryIfAddr([]netip.Prefix{netip.MustParsePrefix("172.18.0.3/16")})}},
		{annotation.L3GatewayConfig, "the node agent, or `gateway-init`, on the Node", "How a [gateway](../features/gateway.md) " +
			"reaches the network outside. `out-of-service` says why the gateway does not work. Mode `disabled`: the node is no gateway.",
			[]string{annotation.MarshalL3Gateway(gateway), annotation.MarshalL3Gateway(&out), annotation.MarshalL3Gateway(nil)}},
		{annotation.GatewayJoinAddrs, "the master, on the Node", "The addresses of the node's gateway router on the join switch.",
			[]string{annotation.MarshalGatewayJoinAddrs([]netip.Prefix{netip.MustParsePrefix("100.64.1.2/24")})}},
		{annotation.ServiceHealthCheck, "a user, on the Service", "Has OVN check the service's endpoints: see " +
			"[health checks](../features/services.md#health-checks). Members that are left out have the values shown.",
			[]string{`{"interval":5,"timeout":20,"successes":3,"failures":3}`}},
		{"kubernetes.io/ingress-bandwidth", "a user, on the Pod", "The most that the pod may receive, in bits per second: " +
			"see [bandwidth](../features/bandwidth.md).", []string{"10M"}},
		{"kubernetes.io/egress-bandwidth", "a user, on the Pod", "The most that the pod may send, in bits per second.", []string{"512k"}},
	}
}

// annotationsPage lists the annotations that are read or written.
func annotationsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Reference: annotations\n\n" + generated + `
The examples are printed by the code that writes the annotation. A value that can't be right is refused with an
[Event](events.md), and the master writes it anew.
`)
	described := map[string]bool{}
	for _, a := range annotationTexts() {
		described[a.key] = true
		b.WriteString("\n## " + a.key + "\n\nWritten by " + a.writer + ".\n\n" + wrap("", "", a.what) + "\n```\n")
		b.WriteString(strings.Join(a.examples, "\n") + "\n```\n")
	}
	for _, key := range constants(t, "annotation") {
		if strings.Contains(key, "k8s.ovn.org/") && !described[key] {
			t.Errorf("annotation %s is not described", key)
		}
	}
	return b.String()
}

// constants are the values of the exported string constants of a package.
func constants(t *testing.T, pkg string) (values []string) {
	t.Helper()
	for _, f := range sources(t, filepath.Join(repository, "go-controller/internal", pkg)) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) == 0 || !spec.Names[0].IsExported() {
				return true
			}
			if s, ok := literal(spec.Values[0]); ok {
				values = append(values, s)
			}
			return true
		})
	}
	return values
}

// sources parses the files of a directory, without tests.
func sources(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// literal is the value of a string literal.
func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

// roleText is a role of an owner's rows as the page describes it. With variants
// there are several such rows, whose roles go on with what differs.
type roleText struct {
	kind     names.Kind
	role     string
	variants string
	what     string
}

func roleTexts() []roleText {
	const family, subnet = "`-v4`, `-v6`", "`-SUBNET`"
	return []roleText{
		{names.KindCluster, names.RoleRouter, "", "the cluster router"},
		{names.KindCluster, names.RoleJoin, "", "the join switch"},
		{names.KindCluster, names.RoleRouterToJoin, "", "the cluster router's port to the join switch"},
		{names.KindCluster, names.RoleJoinToRouter, "", "the join switch's port to the cluster router"},
		{names.KindCluster, names.RoleDiscard, "`-RANGE`", "drops what is sent to a ClusterIP that no service has"},
		{names.KindCluster, names.RoleInside, subnet, "keeps traffic inside the cluster on its ordinary routes"},
		{names.KindNode, names.RoleSwitch, "", "the node's switch"},
		{names.KindNode, names.RoleRouterToNode, "", "the cluster router's port to the node's switch"},
		{names.KindNode, names.RoleNodeToRouter, "", "the node switch's port to the cluster router"},
		{names.KindNode, names.RoleManagement, "", "the management port"},
		{names.KindNode, names.RoleEgress, family, "without gateways: what the node's pods send out of the cluster goes to the node"},
		{names.KindNode, names.RoleHairpin, "", "does not track twice what the node's own kernel gets back"},
		{names.KindNode, names.RoleUnserved, "", "drops what is sent to a ClusterIP and got no backend"},
		{names.KindGateway, names.RoleRouter, "", "the gateway router"},
		{names.KindGateway, names.RoleRouterToJoin, "", "the gateway router's port to the join switch"},
		{names.KindGateway, names.RoleJoinToRouter, "", "the join switch's port to the gateway router"},
		{names.KindGateway, names.RoleExternal, "", "the external switch"},
		{names.KindGateway, names.RoleLocalnet, "", "the external switch's port to the node's bridge"},
		{names.KindGateway, names.RoleRouterToOut, "", "the gateway router's port to the external switch"},
		{names.KindGateway, names.RoleOutToRouter, "", "the external switch's port to the gateway router"},
		{names.KindGateway, names.RoleToCluster, subnet, "the gateway router's route to the pods"},
		{names.KindGateway, names.RoleDefault, family, "the gateway router's default route"},
		{names.KindGateway, names.RoleLeave, family, "the cluster router's default route through this gateway"},
		{names.KindGateway, names.RoleOwnPods, family, "the route of the node's own pods through this gateway"},
		{names.KindGateway, names.RoleRampout, subnet, "pins the pods of a range to this gateway"},
		{names.KindGateway, names.RoleToHost, "`-v4`, `-v6`, `-ADDRESS`", "the route to the node's own address, through its management port"},
		{names.KindGateway, names.RoleToGateway, family, "the route to the gateway router's address on the join switch, where another would outrank it"},
		{names.KindGateway, names.RoleSNAT, subnet, "gives what pods send the node's address as its source"},
		{names.KindGateway, names.RoleLeakGuard, "", "drops packets that would leave with a pod's address"},
		{names.KindNamespace, names.RoleAddresses, family, "the addresses of the namespace's pods"},
		{names.KindPod, names.RolePort, "", "the pod's port"},
		{names.KindPod, names.RoleIngressLimit, "", "the limit of what the pod receives"},
		{names.KindPod, names.RoleEgressLimit, "", "the limit of what the pod sends"},
		{names.KindService, names.RoleLoadBalancer, "`-tcp`, `-udp`, `-sctp`, and for [near endpoints](../features/services.md#near-endpoints) " +
			"`-zone-ZONE`, `-other-zones`, `-node-NODE`, `-nodes-of-ZONE`, `-other-nodes`", "a load balancer"},
		{names.KindService, names.RoleHealthCheck, "", "the health check of one VIP"},
		{names.KindService, names.RoleReply, "`-NODE-v4`, `-NODE-v6`", "brings endpoints' answers to clients outside back to their node"},
	}
}

// rowsPage lists the rows that translating the golden inputs makes.
func rowsPage(t *testing.T) string {
	found, keys := goldenRows(t)
	var b strings.Builder
	b.WriteString("# Reference: the rows of the Northbound database\n\n" + generated + `
Every row carries three ` + "`external_ids`" + `: whose it is, and what for. [The Northbound database, row by
row](../design/northbound.md) explains the rows with examples.

| key | value |
|---|---|
| ` + "`" + names.OwnerTypeKey + "` | the kind of the owner |\n| `" + names.OwnerNameKey + "` | the owner's name: `NAME`, or `NAMESPACE/NAME` |\n| `" +
		names.RoleKey + "` | which of the owner's rows this is |\n\nTo list what an object owns:\n\n```\novn-nbctl find logical_switch_port 'external_ids:\"" +
		names.OwnerNameKey + "\"=\"default/web-0\"'\n```\n\n## Roles\n\n| owner | role | table | what it is |\n|---|---|---|---|\n")
	for _, r := range roleTexts() {
		table := found[owned{r.kind, r.role}]
		if table == "" {
			t.Errorf("no golden input makes a row of %s with role %s", r.kind, r.role)
		}
		delete(found, owned{r.kind, r.role})
		b.WriteString("| " + string(r.kind) + " | `" + r.role + "` | " + table + " | " + r.what + " |\n")
	}
	for o, table := range found {
		t.Errorf("role %s of %s in table %s is not described", o.role, o.kind, table)
	}
	b.WriteString("\nThe master takes owners in the order of this table.\n\nThese roles go on with what tells several rows apart:\n\n")
	for _, r := range roleTexts() {
		if r.variants != "" {
			b.WriteString(wrap("- ", "  ", string(r.kind)+" `"+r.role+"`: "+r.variants))
		}
	}
	b.WriteString("\n`Load_Balancer_Group` has no `external_ids`. Its rows belong to the owners `Cluster` (`" + names.ClusterLBGroup +
		"`) and `Zone`\n(`" + names.ZoneLBGroup("ZONE") + "`, `" + names.ZoneLBGroup("") + "` for nodes without a zone), and are known by name and UUID.\n\n" +
		"## Other external_ids\n\nThe master writes these and removes them where they are not wanted. It leaves all other keys alone.\n\n| key | tables |\n|---|---|\n")
	for _, key := range keys.sorted() {
		b.WriteString("| `" + key + "` | " + strings.Join(keys[key], ", ") + " |\n")
	}
	return b.String()
}

// owned is a role of a kind of owner.
type owned struct {
	kind names.Kind
	role string
}

// keyTables is the tables that have an external_ids key.
type keyTables map[string][]string

func (k keyTables) sorted() []string {
	var out []string
	for key := range k {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// goldenRows translates the golden inputs, and tells which roles are in which
// tables, and which other keys.
func goldenRows(t *testing.T) (map[owned]string, keyTables) {
	t.Helper()
	found, keys := map[owned]string{}, keyTables{}
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("golden inputs: %v, %v", inputs, err)
	}
	for _, in := range inputs {
		out := ovnkube(t.Context(), nil, "translate", "-f", in, "-o", "json",
			"--cluster-subnets", "10.244.0.0/16/24,10.128.0.0/14/23,fd01::/48/64", "--k8s-service-cidrs", "10.96.0.0/16,fd02::/112",
			"--join-subnet", "100.64.0.0/16,fd98::/48")
		var tables map[string][]struct {
			ExternalIDs map[string]string `json:"external_ids"`
		}
		if err := json.Unmarshal([]byte(out.stdout), &tables); err != nil {
			t.Fatalf("translating %s: %v: %s", in, err, out)
		}
		for table, rows := range tables {
			for _, row := range rows {
				note(t, found, keys, table, row.ExternalIDs)
			}
		}
	}
	return found, keys
}

func note(t *testing.T, found map[owned]string, keys keyTables, table string, ids map[string]string) {
	for key := range ids {
		if key != names.OwnerTypeKey && key != names.OwnerNameKey && key != names.RoleKey && !slices.Contains(keys[key], table) {
			keys[key] = append(keys[key], table)
			slices.Sort(keys[key])
		}
	}
	if len(ids) == 0 {
		return
	}
	o := owned{names.Kind(ids[names.OwnerTypeKey]), ids[names.RoleKey]}
	best := ""
	for _, r := range roleTexts() {
		if r.kind == o.kind && (r.role == o.role || r.variants != "" && strings.HasPrefix(o.role, r.role+"-")) && len(r.role) > len(best) {
			best = r.role
		}
	}
	if table == "Load_Balancer_Health_Check" {
		best = names.RoleHealthCheck
	}
	if best != "" {
		o.role = best
	}
	if have := found[o]; have != "" && have != table {
		t.Errorf("role %s of %s is in tables %s and %s", o.role, o.kind, have, table)
	}
	found[o] = table
}
