package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

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
	const rule = "`-RULE`, then where it matters `-v4` or `-v6`, `-PROTOCOL`, `-NAME=NUMBER`"
	const clusterRule = rule + ", `-itself`, `-outside`, `-multicast`, `-dns`, `-api`, `-fragments`, `-new`, " +
		"`-in-NETWORK`"
	return []roleText{
		{names.KindCluster, names.RoleRouter, "", "the cluster router"},
		{names.KindCluster, names.RoleJoin, "", "the join switch"},
		{names.KindCluster, names.RoleRouterToJoin, "", "the cluster router's port to the join switch"},
		{names.KindCluster, names.RoleJoinToRouter, "", "the join switch's port to the cluster router"},
		{names.KindCluster, names.RoleDiscard, "`-RANGE`",
			"drops what is sent to a ClusterIP that no service has; in a primary network, what no exit takes"},
		{names.KindCluster, names.RoleInside, subnet, "keeps traffic inside the cluster on its ordinary routes"},
		{names.KindCluster, names.RoleSwitch, "",
			"the switch of a [network](../features/networks.md) that has one for all nodes"},
		{names.KindCluster, names.RoleLocalnet, "", "the port of that switch to a network outside"},
		{names.KindCluster, names.RoleSpoofGuard, "", "drops what only the network may send: DHCP answers, redirects"},
		{names.KindCluster, names.RoleLinkLocal, "", "drops what has link-local addresses: no address set has them"},
		{names.KindCluster, names.RoleUnserved, "", "drops what is sent to a ClusterIP and got no backend"},
		{names.KindCluster, names.RoleRouterToNode, "",
			"the port of a [primary network](../features/primary-networks.md)'s router to that switch"},
		{names.KindCluster, names.RoleNodeToRouter, "", "the port of that switch to the router"},
		{names.KindCluster, names.RoleDefault, family, "a primary network's route by which policies get to see packets"},
		{names.KindExit, names.RoleLoadBalancer, "`-NAMESPACE/NAME-PROTOCOL`",
			"the Kubernetes API, or the cluster's DNS, for primary networks"},
		{names.KindExit, names.RoleRouter, "",
			"the router by which pods of a primary network leave it on a node"},
		{names.KindExit, names.RoleRouterToJoin, "", "that router's port to the network's join switch"},
		{names.KindExit, names.RoleJoinToRouter, "", "the join switch's port to that router"},
		{names.KindExit, names.RoleRouterToPods, "", "that router's port to the node's switch"},
		{names.KindExit, names.RolePodsToRouter, "", "the node switch's port to that router"},
		{names.KindExit, names.RoleToCluster, subnet, "that router's route to the network's pods"},
		{names.KindExit, names.RoleDefault, family, "that router's default route, to the cluster router"},
		{names.KindExit, names.RoleSNAT, subnet, "gives what the network's pods send an address of the node's subnet"},
		{names.KindExit, names.RoleSNATClients, subnet, "gives clients of the cluster's own network that router's address " +
			"on the join switch"},
		{names.KindExit, names.RoleGuardSource, family, "drops what comes to that router with a source in the network's " +
			"own ranges"},
		{names.KindExit, names.RoleGuardIn, subnet, "drops what is sent into the network, other than answers and what a " +
			"load balancer has translated"},
		{names.KindExit, names.RoleGuardOut, family, "drops what is for the cluster's own pods and Services, other than " +
			"answers and what a load balancer has translated"},
		{names.KindExit, names.RoleLeave, family, "sends what pods of the node send out of the network to that router"},
		{names.KindExit, names.RoleToGateway, "`-v6`", "the route to that router's address on the join switch"},
		{names.KindIsolation, names.RoleGroupLocked, "", "the node's pods that are in primary networks"},
		{names.KindIsolation, names.RoleDenyLocked, "", "denies connections of these pods in the cluster's own network"},
		{names.KindIsolation, names.RoleOpenLocked, "", "lets in at the ports that these pods open there"},
		{names.KindNode, names.RoleSwitch, "", "the node's switch"},
		{names.KindNode, names.RoleRouterToNode, "", "the cluster router's port to the node's switch"},
		{names.KindNode, names.RoleNodeToRouter, "", "the node switch's port to the cluster router"},
		{names.KindNode, names.RoleManagement, "", "the management port"},
		{names.KindNode, names.RoleEgress, family, "without gateways: pods' packets out of the cluster go to the node"},
		{names.KindNode, names.RoleHairpin, "", "does not track twice what the node's own kernel gets back"},
		{names.KindNode, names.RoleSpoofGuard, "",
			"for the switch of a [network](../features/networks.md): see `spoof-guard` of Cluster"},
		{names.KindNode, names.RoleUnserved, "", "for the switch of a " +
			"[primary network](../features/primary-networks.md): see `unserved` of Cluster"},
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
		{names.KindGateway, names.RoleToHost, "`-v4`, `-v6`, `-ADDRESS`",
			"the route to the node's own address, through its management port"},
		{names.KindGateway, names.RoleToGateway, family,
			"the route to its address on the join switch, if needed"},
		{names.KindGateway, names.RoleSNAT, subnet, "gives what pods send the node's address as its source"},
		{names.KindGateway, names.RoleLeakGuard, "", "drops packets that would leave with a pod's address, or for a tunnel"},
		{names.KindNamespace, names.RoleAddresses, family, "the addresses of the namespace's pods"},
		{names.KindIsolation, names.RoleGroupIn, "", "the node's pods that policies with Ingress select"},
		{names.KindCluster, names.RoleMcastRouters, "",
			"the nodes' switch ports to the router; its ACLs hold on all nodes' switches"},
		{names.KindCluster, names.RoleMcastRouteIn, "", "lets multicast from the router into a node's switch"},
		{names.KindCluster, names.RoleMcastRoute, "", "lets multicast from a node's switch to the router"},
		{names.KindCluster, names.RoleMcastDenyOut, "", "drops the multicast that pods send, unless their namespace may"},
		{names.KindCluster, names.RoleMcastDenyIn, "", "drops the multicast that pods would receive, unless their " +
			"namespace may"},
		{names.KindNamespace, names.RoleMcastGroup, "", "the pods of a namespace that may use multicast"},
		{names.KindNamespace, names.RoleMcastOut, "", "lets these pods send multicast"},
		{names.KindNamespace, names.RoleMcastAfterLB, "", "the same, where rules of policies would drop it"},
		{names.KindNamespace, names.RoleMcastIn, family, "lets these pods receive multicast from each other"},
		{names.KindTenant, names.RoleGroup, "", "the pods of a tenant"},
		{names.KindTenant, names.RoleAddresses, family, "of tenant `*`: the addresses of the nodes' management ports"},
		{names.KindTenant, names.RolePass, family, "leaves what comes from the tenant's own namespaces to policies; of " +
			"tenant `*`: what comes from global namespaces and nodes"},
		{names.KindTenant, names.RoleDeny, family, "drops what comes from pods of other tenants"},
		{names.KindIsolation, names.RoleGroupOut, "", "the node's pods that policies with Egress select"},
		{names.KindIsolation, names.RoleDenyIn, "", "denies connections to these pods that no rule allows"},
		{names.KindIsolation, names.RoleDenyOut, "", "denies connections of these pods that no rule allows"},
		{names.KindIsolation, names.RoleOwnIn, "",
			"lets the node itself connect to its pods, such as for probes, and a pod reach itself through a service"},
		{names.KindIsolation, names.RoleOwnOut, "", "lets pods connect to their node, and answer OVN's health checks"},
		{names.KindIsolation, names.RoleUnblock, "`-TIER`", "leaves packets of denied connections to the tiers behind"},
		{names.KindIsolation, names.RoleAnswer, family,
			"lets all pods answer OVN's health checks, while there is a ClusterNetworkPolicy"},
		{names.KindSelector, names.RoleGroup, "", "the selected pods, that rules of policies are about"},
		{names.KindSelector, names.RoleAddresses, family,
			"the addresses of the selected pods or nodes, which rules name as peers"},
		{names.KindSelector, names.RoleNamedPort, "`-PROTOCOL-NAME=NUMBER-v4`, `-PROTOCOL-NAME=NUMBER-v6`",
			"the addresses of the selected pods that have a port of this name and number"},
		{names.KindPolicy, names.RoleIngress, rule + ", `-new`, `-in-NETWORK`", "what a rule of ingress allows"},
		{names.KindPolicy, names.RoleEgress, rule + ", `-dns`, `-new`, `-in-NETWORK`", "what a rule of egress allows"},
		{names.KindPolicy, names.RoleDenyIn, "`-in-NETWORK`", "denies and logs connections that no rule allows"},
		{names.KindPolicy, names.RoleDenyOut, "`-in-NETWORK`", "the same for connections of the pods"},
		{names.KindCluster, names.RoleLogMeter, "", "limits how many lines each ACL logs"},
		{names.KindCluster, names.RoleLogBand, "", "the limit"},
		{names.KindClusterPolicy, names.RoleIngress, clusterRule, "what a rule of ingress accepts, denies or passes"},
		{names.KindClusterPolicy, names.RoleEgress, clusterRule, "what a rule of egress accepts, denies or passes"},
		{names.KindNetworkIsolation, names.RoleGroupIn, "", "the interfaces in the network that policies with Ingress " +
			"select"},
		{names.KindNetworkIsolation, names.RoleGroupOut, "", "the same of Egress"},
		{names.KindNetworkIsolation, names.RoleDenyIn, "", "denies connections to these interfaces that no rule allows"},
		{names.KindNetworkIsolation, names.RoleDenyOut, "", "denies connections of these interfaces that no rule allows"},
		{names.KindNetworkIsolation, names.RoleOwnIn, "",
			"in a primary network: lets a pod reach itself through a service"},
		{names.KindNetworkIsolation, names.RoleNeighbourIn, "", "lets neighbour discovery in, and has OVN track connections"},
		{names.KindNetworkIsolation, names.RoleNeighbourOut, "", "the same for what these interfaces send"},
		{names.KindNetworkIsolation, names.RoleUnblock, "`-TIER`",
			"leaves packets of denied connections to the tiers behind, while a ClusterNetworkPolicy is about the network"},
		{names.KindNetworkIsolation, names.RoleLinkLocal, "", "drops what has link-local addresses: no address set has them"},
		{names.KindMultiPolicy, names.RoleIngress, rule + ", `-in-NETWORK`",
			"what a rule of ingress allows in a network"},
		{names.KindMultiPolicy, names.RoleEgress, rule + ", `-in-NETWORK`", "what a rule of egress allows in a network"},
		{names.KindPod, names.RolePort, "`-NETWORK/INTERFACE` of further interfaces", "the pod's port"},
		{names.KindPod, names.RoleIngressLimit, "", "the limit of what the pod receives"},
		{names.KindPod, names.RoleEgressLimit, "", "the limit of what the pod sends"},
		{names.KindService, names.RoleLoadBalancer, "`-tcp`, `-udp`, `-sctp`, and for " +
			"[near endpoints](../features/services.md#near-endpoints) " +
			"`-zone-ZONE`, `-other-zones`, `-node-NODE`, `-nodes-of-ZONE`, `-other-nodes`", "a load balancer"},
		{names.KindService, names.RoleHealthCheck, "", "the health check of one VIP"},
		{names.KindService, names.RoleReply, "`-NODE-v4`, `-NODE-v6`",
			"brings endpoints' answers to clients outside back to their node"},
	}
}

// rowsPage lists the rows that translating the golden inputs makes.
func rowsPage(t *testing.T) string {
	found, keys := goldenRows(t)
	var b strings.Builder
	b.WriteString("# Reference: the rows of the Northbound database\n\n" + generated +
		wrap("", "", "Every row carries three `external_ids`: whose it is, and what for. [The Northbound database, row by "+
			"row](../design/northbound.md) explains the rows with examples.") + `
| key | value |
|---|---|
| ` + "`" + names.OwnerTypeKey + "` | the kind of the owner |\n" +
		"| `" + names.OwnerNameKey + "` | the owner's name: `NAME`, or `NAMESPACE/NAME` |\n" +
		"| `" + names.RoleKey + "` | which of the owner's rows this is |\n\n" +
		"To list what an object owns:\n\n```\n" +
		"ovn-nbctl find logical_switch_port 'external_ids:\"" + names.OwnerNameKey + "\"=\"default/web-0\"'\n```\n\n" +
		"## Roles\n\n| owner | role | table | what it is |\n|---|---|---|---|\n")
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
	b.WriteString("\nThese roles go on with what tells several rows apart:\n\n")
	for _, r := range roleTexts() {
		if r.variants != "" {
			b.WriteString(wrap("- ", "  ", string(r.kind)+" `"+r.role+"`: "+r.variants))
		}
	}
	b.WriteString("\n" + wrap("", "", "`Load_Balancer_Group` has no `external_ids`. Its rows belong to the owners "+
		"`Cluster` (`"+names.ClusterLBGroup+"`, and in a [primary network](../features/primary-networks.md) `"+
		names.LBGroup("NETWORK/"+names.ClusterOwner)+"` or `"+names.LBGroup("NETWORK/"+names.UserOwner)+"`), `Zone` (`"+
		names.ZoneLBGroup("ZONE")+"`, `"+names.ZoneLBGroup("")+"` for nodes without a zone) and `Exit` (`"+
		names.ExitLBGroup+"`), and are known by name and UUID.") + "\n## Other external_ids\n\n" +
		"The master writes these and removes them where they are not wanted. It leaves all other keys alone.\n\n" +
		"| key | tables |\n|---|---|\n")
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
			"--cluster-subnets", "10.244.0.0/16/24,10.128.0.0/14/23,fd01::/48/64",
			"--k8s-service-cidrs", "10.96.0.0/16,fd02::/112", "--join-subnet", "100.64.0.0/16,fd98::/48",
			"--gateway-pin-cidrs", "10.244.0.0/16", "--physical-networks", "storage:0-4094",
			fmt.Sprintf("--multitenant=%v", strings.Contains(in, "tenants")))
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
	keys[names.ByHandKey] = []string{"Logical_Switch"} // of nodes that no manifest has
	for _, key := range names.ClassicKeys() {
		if keys[key] == nil {
			t.Errorf("no golden input makes a row with external_ids:%s", key)
		}
	}
	return found, keys
}

// note adds a row to what was found.
func note(t *testing.T, found map[owned]string, keys keyTables, table string, ids map[string]string) {
	mark := []string{names.OwnerTypeKey, names.OwnerNameKey, names.RoleKey}
	for key := range ids {
		if !slices.Contains(mark, key) && !slices.Contains(keys[key], table) {
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
		is := r.role == o.role || r.variants != "" && strings.HasPrefix(o.role, r.role+"-")
		if is && r.kind == o.kind && len(r.role) > len(best) {
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
