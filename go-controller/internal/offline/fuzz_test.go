package offline_test

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// Names, zones, labels and annotations of any content give rows, and never a match or an action that says more than
// what the product writes.
func FuzzHostileNames(f *testing.F) {
	f.Add("n1", "web", `" || 1 || "`, `{"default":{"mode":"shared","interface-id":"br_n1"}}`, "z")
	f.Add("n1", "a", "b", `{"default":{"mode":"shared","bridge-id":"br","interface-id":"br_n1",`+
		`"mac-address":"02:42:ac:12:00:03","ip-addresses":["172.18.0.3/16"],"next-hops":["172.18.0.1"],`+
		`"rampout-ip-subnets":["10.244.1.0/24"],"node-port-enable":"true","vlan-id":"0","physical-network":"physnet"}}`, "c1")
	f.Add("n/1", "a_b", "a_b_c", `{"default":{"mode":"shared","interface-id":"\" || ip4","mac-address":"x"}}`, `") {`)
	f.Add("", "", "", "", "")
	schema := nb.NewSchema()
	translators := all.Translators(schema)
	f.Fuzz(func(t *testing.T, node, namespace, pod, annotated, zone string) {
		node = strings.ReplaceAll(node, "/", "") // no name of an object has one
		n := &cluster.Node{Name: node, UID: "u1", Zone: zone, ChassisID: zone}
		if len(validation.IsValidLabelValue(zone)) != 0 {
			n.Zone = "" // the API server lets no other zone through
		}
		n.Addrs = []netip.Addr{netip.MustParseAddr("172.18.0.3")}
		n.ReadAnnotations(map[string]string{"k8s.ovn.org/l3-gateway-config": annotated,
			"k8s.ovn.org/node-subnets": annotated, "k8s.ovn.org/node-chassis-id": zone})
		service := cluster.Name{Namespace: namespace, Name: pod}
		opener := cluster.Name{Namespace: "primary-" + namespace, Name: pod}
		labels := cluster.NewLabels(map[string]string{zone: annotated})
		c := offline.NewOf(config.DefaultCluster(), schema, translators, []cluster.Object{
			n, &cluster.Namespace{Name: namespace},
			&cluster.Pod{Name: service, UID: "u2", Node: node, Bandwidth: cluster.Bandwidth{Ingress: 1e6, Egress: 1e6}},
			&cluster.Namespace{Name: opener.Namespace, Labels: cluster.NewLabels(map[string]string{names.PrimaryLabel: zone})},
			&cluster.Pod{Name: opener, UID: "u4", Node: node, Labels: labels,
				Opens: cluster.NewOpenPorts([]cluster.OpenPort{{Protocol: "icmp"}, {Protocol: "tcp", Number: 80}})},
			&cluster.NetworkPolicy{Name: service, UID: "u5", Ingress: cluster.PolicyRules{Isolates: true},
				Pods: cluster.NewLabelSelector(cluster.Requirement{Key: zone, Operator: cluster.In, Values: []string{annotated}})},
			&cluster.Service{Name: service, UID: "u3", ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")},
				Ports: []cluster.ServicePort{{Name: zone, Protocol: cluster.TCP, Port: 80}}}})
		db, errs := c.Database()
		for _, err := range errs {
			t.Errorf("rows that can't be made: %v", err)
		}
		for _, table := range []string{nbdb.ACLTable, nbdb.QoSTable, nbdb.LogicalRouterPolicyTable} {
			for _, m := range db.Rows(table) {
				checkMatch(t, m.(interface{ GetMatch() string }).GetMatch())
			}
		}
	})
}

// checkMatch fails if a match has words other than fields, addresses, numbers and quoted names (ovn-sb(5), "Logical
// Flow").
func checkMatch(t *testing.T, match string) {
	t.Helper()
	rest := match
	for {
		before, after, found := strings.Cut(rest, `"`)
		for _, word := range wordPattern.FindAllString(before, -1) {
			if _, err := netip.ParseAddr(word); err == nil || fieldPattern.MatchString(word) {
				continue
			}
			if _, err := netip.ParsePrefix(word); err != nil {
				t.Errorf("match %s: %q is no field and no address", match, word)
			}
		}
		if !found {
			return
		}
		quoted, err := strconv.QuotedPrefix(`"` + after)
		if err != nil {
			t.Errorf("match %s: %v", match, err)
			return
		}
		rest = after[len(quoted)-1:]
	}
}

var (
	wordPattern  = regexp.MustCompile(`[^ =!<>&|(){},]+`)
	fieldPattern = regexp.MustCompile(`^([@$][a-z][a-z0-9_]*|ip|ip4|ip6|tcp|udp|sctp|ct|reg0|eth|inport|outport|` +
		`nd|nd_ra|nd_rs|icmp[46]|igmp|arp|[0-9]+)(\.[a-z_]+)?$`)
)
