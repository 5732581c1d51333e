package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"path/filepath"
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
	further := ipnet.MAC{0x02, 5: 0x50}
	gateway := &annotation.L3Gateway{
		Bridge: "breth0", Network: annotation.DefaultPhysicalNetwork, Port: "breth0_n1",
		MAC:      ipnet.MAC{0x02, 0x42, 0xac, 0x12, 0x00, 0x03},
		IPs:      []netip.Prefix{netip.MustParsePrefix("172.18.0.3/16")},
		NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")}, NodePort: true, MTU: 1500, PodMTU: 1442,
	}
	out := *gateway
	out.Out = "ovn-controller does not answer"
	return []annotationText{
		{annotation.PodNetworks, "the master, on the Pod", "The pod's addresses, MAC and gateways. " +
			"It is the record of the allocation. " +
			"A pod with one address family also has `ip_address` and `gateway_ip`, for older readers.",
			[]string{annotation.MarshalPodNetworks(single), annotation.MarshalPodNetworks(dual)}},
		{annotation.NetworkRequests, "a user, on the Pod", "Which further interfaces the pod asks for: see " +
			"[networks of one's own](../features/networks.md#what-a-pod-asks-for). " +
			"What the pod gets is in `" + annotation.PodNetworks + "`, with a key `NETWORK/INTERFACE`.",
			[]string{"blue, routed@backend", `[{"name":"blue","ips":["10.99.0.50"],"mac":"02:00:00:00:00:50"}]`}},
		{annotation.NetworkStatus, "the master, on the Pod",
			"Which interfaces a pod has that asked for some. It is written once, unless somebody else has written it.",
			[]string{annotation.MarshalNetworkStatus([]annotation.InterfaceStatus{
				{Name: "ovn-kubernetes", Interface: "eth0", Default: true, PodNetwork: single},
				{Name: "shop/blue", Interface: "net1", PodNetwork: annotation.PodNetwork{MAC: further,
					IPs: []netip.Prefix{netip.MustParsePrefix("10.99.0.50/24")}}}})}},
		{annotation.DefaultNetwork, "a user, on the Pod", "Which addresses and MAC the pod asks for in its " +
			"[primary network](../features/primary-networks.md#choose-a-pods-addresses).",
			[]string{`[{"name":"default","namespace":"ovn-kubernetes","ips":["10.77.0.50/16"],"mac":"02:00:00:00:00:50"}]`}},
		{annotation.PrimaryClaim, "a user, on the Pod", "Which IPAMClaim keeps the pod's addresses in its " +
			"[primary network](../features/primary-networks.md#keep-addresses), if the annotation above names none.",
			[]string{"db"}},
		{annotation.OpenPorts, "a user, on the Pod", "Which ports of `eth0` a pod of a primary network [opens to the " +
			"cluster's own network](../features/primary-networks.md#open-ports-of-eth0).",
			[]string{"[{protocol: tcp, port: 9090}, {protocol: icmp}]"}},
		{annotation.PolicyNetworks, "a user, on the MultiNetworkPolicy", "Which networks the policy is about: see " +
			"[policies of networks](../features/multi-network-policy.md).", []string{"blue, default/shared"}},
		{annotation.PodMacvlan, "a user, on the Pod", "On which interface of its node a privileged pod gets " +
			"[a macvlan](../features/macvlan.md).", []string{"true", "eth1"}},
		{annotation.MachineArrived, "KubeVirt, on the Pod", "When a virtual machine that " +
			"[moves](../features/networks.md#move-a-virtual-machine) has begun to run in this pod. Any value counts.",
			[]string{"2026-11-30 10:00:00 +0000 UTC"}},
		{annotation.PodClassic, "the master, on the Pod",
			"What `" + annotation.PodNetworks + "` says, in the classic form, which has room for the first address. " +
				"The master writes both in one patch.",
			[]string{annotation.MarshalPodClassic(single)}},
		{annotation.NodeSubnets, "the master, on the Node",
			"The node's subnets, one per address family. It is the record of the allocation.",
			[]string{annotation.MarshalNodeSubnets([]netip.Prefix{v4.Masked(), v6.Masked()})}},
		{annotation.NodeChassisID, "the node agent, on the Node",
			"The node's OVN chassis: `external_ids:system-id` of its Open_vSwitch row.",
			[]string{names.SystemID("n1")}},
		{annotation.NodeMgmtPortMAC, "the node agent, on the Node", "The MAC address of the node's management port.",
			[]string{annotation.MarshalNodeMgmtPortMAC(ipnet.MAC{0x0a, 0x58, 0x0a, 0xf4, 0x01, 0x02})}},
		{annotation.NodePrimaryIfAddr, "the node agent, on the Node", "The node's own addresses, with prefix lengths.",
			[]string{annotation.MarshalNodePrimaryIfAddr([]netip.Prefix{netip.MustParsePrefix("172.18.0.3/16")})}},
		{annotation.NodeAgentReady, "the node agent, on the Node", "The agent has set up the node since the Node was " +
			"made. The master then removes [the taint that waits for it](../operate/install.md#pods-wait-for-the-agent), " +
			"and writes the condition `NetworkUnavailable`.", []string{annotation.NodeIsReady}},
		{annotation.NodePhysicalNetworks, "the node agent, on the Node", "The networks outside that the node's " +
			"`ovn-bridge-mappings` has bridges to. The status of [networks joined to a VLAN](../features/networks.md#a-vlan-" +
			"outside) names nodes that lack theirs.",
			[]string{annotation.MarshalNodePhysicalNetworks([]string{"lan", "storage"}),
				annotation.MarshalNodePhysicalNetworks(nil)}},
		{annotation.L3GatewayConfig, "the node agent, or `gateway-init`, on the Node",
			"How a [gateway](../features/gateway.md) reaches the network outside. " +
				"`out-of-service` says why the gateway does not work. Mode `disabled`: the node is no gateway.",
			[]string{annotation.MarshalL3Gateway(gateway), annotation.MarshalL3Gateway(&out),
				annotation.MarshalL3Gateway(nil)}},
		{annotation.GatewayJoinAddrs, "the master, on the Node",
			"The addresses of the node's gateway router on the join switch. A primary network has an entry for those of its " +
				"exit on its join switch. The agent reads those in the node's own subnet, in the entry `NAMESPACE.NAME/exit`.",
			[]string{annotation.MarshalGatewayJoinAddrs([]netip.Prefix{netip.MustParsePrefix("100.64.1.2/24")})}},
		{annotation.ServiceHealthCheck, "a user, on the Service", "Has OVN check the service's endpoints: see " +
			"[health checks](../features/services.md#health-checks). Members that are left out have the values shown.",
			[]string{`{"interval":5,"timeout":20,"successes":3,"failures":3}`}},
		{annotation.NamespaceMulticast, "a user, on the Namespace",
			"Lets the namespace's pods send each other multicast: see [multicast](../features/multicast.md).",
			[]string{"true"}},
		{annotation.NamespaceTenant, "a user, or `ovnkube tenant`, on the Namespace",
			"The namespace's tenant, in a cluster with `--multitenant`: see [tenants](../features/tenants.md). `*` makes it " +
				"global.", []string{"shop", annotation.EveryTenant}},
		{annotation.NamespaceChangeNetwork, "a user, on the Namespace", "The same as OpenShift SDN has it. " +
			"`" + annotation.NamespaceTenant + "` counts if both are there.", []string{"join:shop", "isolate", "global"}},
		{annotation.ACLLogging, "a user, on the Namespace or the ClusterNetworkPolicy",
			"Has ovn-controller log what policies decide: see [logs of policies](../features/policy-logs.md). The key `pass` " +
				"is for ClusterNetworkPolicies only.",
			[]string{`{"allow":"info","deny":"alert"}`}},
		{"kubernetes.io/ingress-bandwidth", "a user, on the Pod",
			"The most that the pod may receive, in bits per second: " +
				"see [bandwidth](../features/bandwidth.md).", []string{"10M"}},
		{"kubernetes.io/egress-bandwidth", "a user, on the Pod",
			"The most that the pod may send, in bits per second.", []string{"512k"}},
	}
}

// annotationsPage lists the annotations that are read or written.
func annotationsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Reference: annotations\n\n" + generated + wrap("", "", "The examples are printed by the code that "+
		"writes the annotation. A value of the master's that cannot be right is refused with an [Event](events.md), and "+
		"the master writes it anew."))
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
