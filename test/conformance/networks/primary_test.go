package networks

import "slices"

// Pages that several cases refer to.
const (
	primaryPage  = "features/primary-networks.md"
	networksPage = "features/networks.md"
	chosenPage   = primaryPage + "#choose-a-pods-addresses"
	reachPage    = primaryPage + "#who-reaches-whom"
	limitsPage   = primaryPage + "#limits"
	outsidePage  = primaryPage + "#services-from-outside"
	upstreamPage = networksPage + "#coming-from-ovn-kubernetes"
	comingPage   = networksPage + "#coming-from-ovn-kubernetes"
	fieldsPage   = networksPage + "#fields-of-a-userdefinednetwork"
	vlanPage     = networksPage + "#a-vlan-outside"
)

// sameCode is why some combinations of kind and topology are not tried.
const sameCode = "The kinds differ only in how they are read. Packets are tried in the other combinations."

// primaryGroups are cases about primary networks: Network Segmentation without the kinds.
func primaryGroups() []group {
	return slices.Concat([]group{primaryPods(), isolation(), severalRanges(), egress(), openPorts(), restarts()},
		[]group{primaryPolicies(), primaryServices(), mirroring(), preconfigured(), annotation()})
}

func primaryPods() group {
	const first = "network_segmentation.go"
	readers := []test{unit("kube/attachment/userdefined_test.go", "TestUserDefined"),
		unit("kube/attachment/userdefined_test.go", "TestClusterUserDefined")}
	const multicast = "features/multicast.md#limits"
	return group{"Primary networks: pods reach each other", []string{first}, "", []behaviour{
		{"two nodes, layer2, by definition", proved(primary("tenants/*/within"))},
		{"two nodes, layer2, by UserDefinedNetwork, with a chosen gateway", proved(primary("tenants/*/within"))},
		{"two nodes, layer3, by definition", proved(primary("tenants/*/within"))},
		{"two nodes, layer3, by ClusterUserDefinedNetwork", proved(primary("tenants/two namespaces"))},
		{"layer2 by ClusterUserDefinedNetwork, layer3 by UserDefinedNetwork", untried(sameCode, readers...)},
		{"`network-status` has the interface `ovn-udn1` with its addresses", proved(primary("tenants/*/within"))},
		{"`network-status` says that `ovn-udn1` has the default routes", proved(primary("tenants/*/within"))},
		{"two networks of layer2 with one range: each pod reaches its own", proved(primary("tenants/*/within"))},
		{"two networks of layer3 with one range: each pod reaches its own", proved(primary("tenants/*/within"))},
		{"names of namespace and network that make one text together", proved(unit("kube/attachment/request_test.go",
			"TestRequests"))},
		{"multicast between nodes, layer2, in a namespace that may use multicast", untried("The network's switch passes " +
			"multicast to all its pods, whatever the namespace's annotation says.")},
		{"multicast between nodes, layer3", notServed("The network's router passes no multicast on.", multicast)},
		{"pods get the queries of IGMP, layer3", notServed("Nobody asks which groups pods listen to.", multicast)},
	}}
}

func isolation() group {
	return group{"Primary networks: isolation", []string{"network_segmentation.go"}, "", []behaviour{
		{"pods of the cluster's own network do not reach a pod's `eth0`", proved(primary("nobody enters"))},
		{"they do not reach its address in the network, even with a route", proved(primary("nobody enters"))},
		{"a node does not reach the pod's address in the network", proved(primary("nobody enters"))},
		{"pods of another primary network do not reach it, by either address", proved(primary("nobody enters"))},
		{"a pod does not reach pods of the cluster's own network", proved(primary("tenants/*/outside"))},
		{"the kubelet's readiness probes reach the pod's `eth0`", proved(primary(""))},
		{"the kubelet's liveness and startup probes", proved(primary("probes"))},
		{"a pod stays ready when the kubelet starts again", untried("No row depends on the kubelet's process.")},
		{"other processes of the pod's own node do not reach `eth0`", notServed("All processes of the node do.",
			reachPage)},
		{"other nodes do not reach `eth0`", proved(primary("open ports"))},
		{"a pod asks the Kubernetes API and DNS by their ClusterIPs", proved(primary("tenants/*/outside"))},
		{"a pod asks the Kubernetes API by its name", untried("A stand-in answers for DNS in the tests.")},
		{"by `eth0` a pod does not reach its node", proved(primary("nobody leaves by eth0"))},
		{"by `eth0` a pod does not reach Services", proved(primary("nobody leaves by eth0"))},
		{"by `eth0` a pod does not reach other pods of its node", proved(primary("open ports"))},
	}}
}

func severalRanges() group {
	const change = "A network cannot be changed. The API server refuses that."
	return group{"Primary networks: several ranges, and changes", []string{"network_segmentation.go"}, "", []behaviour{
		{"nodes with subnets of different ranges reach each other", notServed("A UserDefinedNetwork of topology Layer3 has "+
			"one range per family. A definition may have up to four in all, which no test tries.", fieldsPage)},
		{"a node reaches pods in the network through a VRF, on any node", notServed("Nodes are not in the network, and "+
			"there is no VRF.", reachPage)},
		{"a further range leaves nodes the subnets that they have", notServed(change, fieldsPage)},
		{"a change that is refused leaves the network as it is", proved(userDefined("refused"))},
	}}
}

func egress() group {
	return group{"Primary networks: egress", []string{"network_segmentation.go"}, "", []behaviour{
		{"pods reach a host outside: layer2, by definition", proved(primary("tenants/*/outside"))},
		{"pods reach a host outside: layer2, by UserDefinedNetwork, chosen gateway", proved(primary("tenants/*/outside"))},
		{"pods reach a host outside: layer3, by definition", proved(primary("tenants/*/outside"))},
		{"pods reach a host outside: layer3, by ClusterUserDefinedNetwork", proved(primary("tenants/two namespaces"))},
		{"layer2 by ClusterUserDefinedNetwork, layer3 by UserDefinedNetwork", untried(sameCode)},
		{"the pod's annotation has the network's default gateways", proved(unit("allocate/primary_test.go", "TestPrimary"))},
		{"the external bridge sends ARP for a node's address to one router", notNeeded("Networks have "+
			"no patch ports and no flows of the external bridge.", "adr/0058-primary-networks.md")},
	}}
}

func openPorts() group {
	const open = "open ports"
	return group{"Primary networks: ports of eth0 that a pod opens", []string{"network_segmentation.go"}, "", []behaviour{
		{"pods of the cluster's own network reach a port that is opened", proved(primary(open))},
		{"pods in the host network of another node reach it", proved(primary(open))},
		{"a value that is not valid closes the port, and an Event says why",
			proved(unit("kube/kinds/openports_test.go", "TestDecodeOpenPorts"))},
	}}
}

func restarts() group {
	master, agents := primary("the master starts again"), primary("agents start again")
	return group{"Primary networks: restarts",
		[]string{"network_segmentation.go", "network_segmentation_integration.go"}, "",
		[]behaviour{
			{"pods reach each other after the node's agent starts again: layer2, layer3", proved(agents)},
			{"pods reach each other after the agent starts again, with a chosen gateway", proved(agents)},
			{"the agent starts again on a node of a network with Services", proved(agents)},
			{"rows and addresses stay when the master starts again", proved(master)},
			{"a pod in a primary and another network works after such a start", proved(primary("claims"))},
			{"all starts again with an EgressIP of the network's pods", notServed("There are no EgressIPs.", comingPage)},
		}}
}
