package networks

import "slices"

// kindGroups are cases about the kinds that declare networks.
func kindGroups() []group {
	return slices.Concat([]group{namespaced(), clusterScoped(), nodeAnnotations()}, validations())
}

const (
	noDefinition = "None is made."
	noAllocation = "There is no such condition. A node gets a subnet with its first pod in the network. " +
		"A node for which there is none waits, and an Event of the Node says so."
)

func namespaced() group {
	inUse := userDefined("deleted while in use")
	waiting := unit("allocate/primary_test.go", "TestPodsWaitForTheirPrimaryNetwork")
	return group{"UserDefinedNetworks", []string{"network_segmentation.go"}, "", []behaviour{
		{"without the label, pods stay in the cluster's own network", proved(waiting)},
		{"the label cannot be added to a namespace later", proved(primary("the label stays"))},
		{"the label cannot be removed from a namespace later", proved(primary("the label stays"))},
		{"a NetworkAttachmentDefinition is made from the network", notNeeded(noDefinition, upstreamPage)},
		{"the NetworkAttachmentDefinition goes with the network", notNeeded(noDefinition, upstreamPage)},
		{"a network cannot be deleted while pods are in it", proved(inUse)},
		{"it is gone once the last pod is gone", proved(inUse)},
		{"the status names a pod that keeps a network which is deleted", proved(inUse)},
		{"a condition says that there are too few subnets for all nodes", notServed(noAllocation, comingPage)},
		{"a condition says that the namespace has a primary network already",
			proved(unit("translate/topology/usernetwork_test.go", "TestOlderPrimaryNetwork"))},
		{"a network that is not valid has a condition that says why", proved(userDefined("refused"))},
	}}
}

func clusterScoped() group {
	shared, left := userDefined("shared"), primary("tenants/two namespaces/not selected any more")
	gone := primary("nothing is left")
	return group{"ClusterUserDefinedNetworks", []string{"network_segmentation.go"}, "", []behaviour{
		{"pods of all selected namespaces are in the network", proved(shared, primary("tenants/two namespaces"))},
		{"a namespace that is made later, and is selected, gets the network", proved(primary("tenants/two namespaces"))},
		{"a namespace that gets the labels later gets the network", proved(shared)},
		{"a namespace that loses the labels loses the network", proved(shared, left)},
		{"another selector gives the network to other namespaces", proved(userDefined("VLAN"))},
		{"namespaces that are deleted leave nothing of the network", proved(gone)},
		{"a network that is deleted leaves nothing", proved(gone, userDefined("nothing is left"))},
		{"NetworkAttachmentDefinitions are made and deleted in the selected namespaces",
			notNeeded(noDefinition, upstreamPage)},
		{"the status lists the selected namespaces", proved(left)},
		{"a network cannot be deleted while pods are in it", proved(unit("core/protection_test.go", "TestProtection"))},
		{"the status names a pod that keeps a network which is deleted", proved(userDefined("VLAN"))},
		{"a condition says that there are too few subnets for all nodes", notServed(noAllocation, comingPage)},
		{"a condition says that a namespace has a primary network already", proved(primary("a newer network"))},
	}}
}

func nodeAnnotations() group {
	const why = "Nodes have no numbers of tunnels for networks. An exit is a router with an address of the node's subnet."
	const adr = "adr/0058-primary-networks.md"
	return group{"Annotations of Nodes", []string{"network_segmentation_node_annotations.go"}, "", []behaviour{
		{"numbers of tunnels are removed with the network", notNeeded(why, adr)},
		{"all nodes say which version of the layer2 topology they have", notNeeded(why, adr)},
		{"networks of layer3 have no numbers of tunnels", notNeeded(why, adr)},
		{"networks of layer2 that are not primary have no numbers of tunnels", notNeeded(why, adr)},
		{"the address of a network's exit goes with the network", proved(primary("nothing is left"))},
	}}
}

// validations are groups about specs that are refused or taken.
func validations() []group {
	from := []string{"network_segmentation_api_validations.go", "testscenario/cudn"}
	const refusing = "*Refused* means: the API server does not take it, or the condition `NetworkCreated` is False and " +
		"says why. The fields that several topologies have are read by the same code."
	return []group{
		{"Specs of localnet networks", from, refusing, localnetSpecs()},
		{"Specs of layer2 and layer3 networks", from, refusing, layerSpecs()},
	}
}

func localnetSpecs() []behaviour {
	wrong := unit("kube/attachment/userdefined_test.go", "TestClusterUserDefinedThatIsNotValid")
	user := unit("kube/attachment/userdefined_test.go", "TestUserDefinedThatIsNotValid")
	defined := unit("kube/attachment/definition_test.go", "TestDefinitionThatIsNotValid")
	right := unit("kube/attachment/userdefined_test.go", "TestClusterUserDefined")
	return []behaviour{
		{"refused: the fields of another topology", proved(wrong, user)},
		{"refused: the role Primary", proved(wrong)},
		{"refused: no role", proved(wrong)},
		{"refused: no physical network", proved(wrong)},
		{"refused: a comma or a colon in the physical network's name", proved(wrong, defined)},
		{"refused: an empty name of the physical network", proved(wrong)},
		{"refused: a very long name of the physical network", notServed("It has no limit of its own. The operator's "+
			"list of physical networks does not have the name, so the network is refused.", vlanPage)},
		{"refused: no `subnets`, though `ipam.mode` is not Disabled", proved(user)},
		{"refused: `subnets` where `ipam.mode` is Disabled", proved(user)},
		{"refused: an empty list of `subnets`", proved(user)},
		{"refused: `excludeSubnets` without `subnets`", proved(defined)},
		{"refused: `excludeSubnets` where `ipam.mode` is Disabled", proved(wrong)},
		{"refused: an empty list of `excludeSubnets`", proved(userDefined("refused"))},
		{"refused: `subnets` or `excludeSubnets` that are no ranges", proved(wrong, user)},
		{"refused: two ranges of one family", proved(user)},
		{"refused: `ipam.lifecycle` Persistent where `ipam.mode` is Disabled", proved(user)},
		{"refused: an MTU below 576 or above 65535", proved(defined)},
		{"refused: an MTU below 1280 with an IPv6 range", proved(user, defined)},
		{"refused: a mode of VLAN other than Access, or no tag", proved(wrong)},
		{"refused: the tags 0 and 4095", proved(wrong)},
		{"taken: a physical network and `subnets`", proved(right, userDefined("VLAN"))},
		{"taken: `ipam.lifecycle` Persistent", proved(right)},
		{"taken: `ipam.mode` Disabled", proved(right)},
	}
}

func layerSpecs() []behaviour {
	user := unit("kube/attachment/userdefined_test.go", "TestUserDefinedThatIsNotValid")
	right := unit("kube/attachment/userdefined_test.go", "TestUserDefined")
	const unknown = "The fields are not known, so that the network is refused."
	const ranges = "One range per family is possible."
	return []behaviour{
		{"refused: `defaultGatewayIPs` in a network that is not primary", proved(user)},
		{"refused: `defaultGatewayIPs` outside of `subnets`, IPv4 and IPv6", proved(user)},
		{"refused: `defaultGatewayIPs` outside of `infrastructureSubnets`", proved(user)},
		{"refused: reserved and infrastructure ranges without `subnets`", proved(user)},
		{"refused: reserved and infrastructure ranges that overlap", proved(user)},
		{"refused: a reserved or infrastructure range outside of `subnets`", proved(user)},
		{"taken: chosen gateways, reserved and infrastructure ranges", proved(user, primary("chosen addresses"))},
		{"taken: layer2 with each role", proved(user, right)},
		{"refused: a change of `subnets`", proved(userDefined("refused"))},
		{"refused: two ranges of one family, or more than two ranges, in layer3", proved(user)},
		{"refused: ranges that overlap, or whose `hostSubnet` differ", notServed(ranges, fieldsPage)},
		{"taken: several ranges per family in a primary network of layer3", notServed(ranges, fieldsPage)},
		{"taken: one more range in a network of layer3", notServed("A network cannot be changed.", fieldsPage)},
		{"refused and taken: the transport NoOverlay", notServed(unknown, comingPage)},
		{"refused and taken: the transport EVPN", notServed(unknown, comingPage)},
	}
}
