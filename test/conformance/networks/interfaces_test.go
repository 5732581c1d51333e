package networks

// interfaceGroups are cases about further interfaces: Multi Homing, localnet and claims.
func interfaceGroups() []group {
	return []group{started(), reached(), localnet(), hostBridge(), changedDefinitions(), severalInterfaces(),
		furtherPolicies(), localnetPolicies(), claims(), virtualMachines()}
}

// combined are subtests about networks that two pods on two nodes are in, one for each network.
func combined() test { return secondary("combinations/*") }

func started() group {
	excluded := unit("allocate/network_test.go", "TestAskedAddresses")
	return group{"Further interfaces: pods start", []string{"multihoming.go"}, "", []behaviour{
		{"in a layer3 network", proved(userDefined("example"), further("policies/*"))},
		{"in a layer3 network of IPv6 alone", proved(combined())},
		{"in a layer2 network", proved(secondary("example"))},
		{"in a layer2 network with excluded ranges, outside of these", proved(excluded)},
		{"in a layer2 network without `subnets`", proved(further("policies/*"))},
		{"in a layer2 network of IPv6 alone", proved(combined())},
		{"in a layer2 network of both families", proved(secondary("example"))},
		{"in a localnet network", proved(secondary("VLAN"))},
		{"in a localnet network with excluded ranges", proved(secondary("VLAN"), excluded)},
		{"in a localnet network without `subnets`", proved(combined())},
		{"in a localnet network of IPv6 alone", proved(combined())},
		{"in a localnet network of both families", proved(secondary("VLAN"))},
		{"pods that were made before the network start once it is there", proved(userDefined("shared"))},
	}}
}

func reached() group {
	return group{"Further interfaces: pods reach each other", []string{"multihoming.go"}, "", []behaviour{
		{"two nodes, layer2", proved(secondary("tenants"), userDefined("example"))},
		{"two nodes, layer2 with excluded ranges", proved(combined())},
		{"two nodes, layer3", proved(userDefined("example"), further("policies/*"))},
		{"two nodes, layer3 of IPv6 alone", proved(combined())},
		{"two nodes, layer3 of both families", proved(userDefined("example"))},
		{"two nodes, layer2 without `subnets`, addresses that the pod itself sets", proved(combined())},
		{"two nodes, layer2 without `subnets`, addresses that the pod asks for", proved(further("policies/*"))},
		{"two nodes, layer2 of IPv6 alone", proved(combined())},
		{"two nodes, layer2 of both families", proved(secondary("tenants"))},
		{"two nodes, localnet", proved(secondary("VLAN"))},
		{"two nodes, localnet without `subnets`, addresses that the pod itself sets", proved(combined())},
		{"two nodes, localnet without `subnets`, addresses that the pod asks for", proved(combined())},
		{"two nodes, localnet of IPv6 alone", proved(combined())},
		{"two nodes, localnet of both families", proved(secondary("VLAN"))},
	}}
}

func localnet() group {
	return group{"Further interfaces: localnet", []string{"multihoming.go", "network_segmentation_localnet.go"}, "",
		[]behaviour{
			{"a pod and a host in the VLAN exchange packets", proved(secondary("VLAN"), userDefined("VLAN"))},
			{"a pod's interface has the MTU of the network", proved(unit("cni/networks_test.go", "TestFurtherInterfaces"))},
			{"a network of another name uses the bridge mapping, with a VLAN", proved(secondary("VLAN"))},
			{"pods of two namespaces reach each other by a ClusterUserDefinedNetwork", proved(userDefined("VLAN"))},
			{"ports without addresses stay when the node's agent starts again",
				proved(secondary("combinations/agent starts again"))},
		}}
}

func hostBridge() group {
	const why = "A second network in the gateways' bridge stops the gateway. So its name `physnet` is refused."
	return group{"Further interfaces: localnet in the nodes' own bridge", []string{"multihoming.go"}, "", []behaviour{
		{"a pod of the cluster's own network reaches a pod there, on its node and on another", notServed(why, vlanPage)},
		{"a pod in the host network reaches a pod there, on its node and on another", notServed(why, vlanPage)},
		{"a pod there reaches a pod in the host network, on its node and on another", notServed(why, vlanPage)},
		{"all three with a VLAN and a router outside", notServed(why, vlanPage)},
	}}
}

func changedDefinitions() group {
	comes := unit("allocate/network_test.go", "TestNetworkComesAndGoes")
	other := secondary("VLAN/another VLAN")
	return group{"Further interfaces: a definition changes", []string{"multihoming.go"}, "", []behaviour{
		{"new pods have the new MTU", proved(other)},
		{"new pods have addresses of the new range", proved(comes)},
		{"a pod does not reach a host outside once the definition has another VLAN", proved(other)},
		{"a pod reaches the host once the host is in that VLAN, too", proved(other)},
	}}
}

func severalInterfaces() group {
	return group{"Further interfaces: two in one network", []string{"multihoming.go"}, "", []behaviour{
		{"two definitions are one network, and give a pod two of its addresses",
			notServed("Two definitions are two networks, "+
				"even if the field `name` is the same.", networksPage+"#limits")},
		{"a pod asks twice for a layer2 network, and each interface works alone", proved(combined())},
		{"a pod asks twice for a layer3 network, and each interface works alone", proved(combined())},
		{"a pod asks twice for a localnet network, and each interface works alone", proved(combined())},
	}}
}

func claims() group {
	kept, whole := primary("claims"), unit("allocate/claim_test.go", "TestClaim")
	asked := unit("allocate/preferred_test.go", "TestPreferred")
	lacks := unit("allocate/claim_test.go", "TestClaimSaysWhatItLacks")
	refused := unit("kube/attachment/preferred_test.go", "TestPreferredThatIsNotServed")
	const partial = "The address of the other family is granted as without the annotation."
	return group{"Claims that keep addresses", []string{"kubevirt.go"}, "", []behaviour{
		{"a pod made anew on another node has its addresses: layer2", proved(kept, whole)},
		{"a pod made anew on another node has its addresses: primary network", proved(kept)},
		{"a pod made anew on another node has its addresses: localnet", proved(secondary("VLAN/virtual machines move"))},
		{"a pod made anew that asks for addresses and a MAC has its addresses",
			proved(unit("allocate/machine_test.go", "TestClaimOfChosenAddresses"))},
		{"a second pod that asks for an address that is taken waits", proved(asked)},
		{"the claim of a pod that waits for an address has a condition that says so", proved(kept, lacks)},
		{"a second pod that asks for a MAC that is taken waits", proved(primary("chosen addresses"))},
		{"the claim of a pod that waits for a MAC has a condition that says so", proved(lacks)},
		{"a pod that asks for one family of two is refused, IPv4 and IPv6", notServed(partial, chosenPage)},
		{"a pod that asks for two addresses of one family is refused", proved(refused)},
		{"a pod that asks for one address of each family has them", proved(primary("chosen addresses"))},
		{"a pod waits where a network is full, and an Event says so", proved(unit("allocate/network_test.go",
			"TestAskedAddresses"))},
	}}
}

func virtualMachines() group {
	moved := primary("a virtual machine moves")
	without := unit("allocate/machine_test.go", "TestMachineMovesWithoutSubnets")
	const dhcp = "OVN answers no DHCP and sends no router advertisements here. A machine has to know its addresses."
	return group{"Virtual machines", []string{"kubevirt.go"}, "", []behaviour{
		{"machines keep their addresses while they move: layer2", proved(moved)},
		{"machines keep them in a primary network", proved(moved)},
		{"machines keep them when the move fails", proved(moved)},
		{"machines keep addresses that they have chosen in a primary network", untried("The claim keeps chosen ones as it "+
			"keeps others.", moved)},
		{"machines keep them in a localnet network, with and without `subnets`",
			proved(secondary("VLAN/virtual machines move"), without)},
		{"machines keep connections while they move", proved(moved)},
		{"machines keep addresses while they move in the cluster's own network",
			notServed("Virtual machines have no support of their own.", comingPage)},
		{"machines keep addresses while they move in a network with EVPN", notServed("There is no EVPN.", comingPage)},
		{"machines get addresses by DHCP and router advertisements in a primary network", notServed(dhcp, comingPage)},
		{"machines with one host name start in a localnet network without `subnets`", untried("To the network they are " +
			"pods of different names.")},
	}}
}
