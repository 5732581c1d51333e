package networks

func primaryPolicies() group {
	const icmp = "Upstream has a flag for that. Here policies deny ICMP as they deny the rest."
	shared := primary("tenants/two namespaces/policy")
	later := unit("cluster/index/primaries_test.go", "TestSharedPrimaries")
	return group{"Primary networks: NetworkPolicies", []string{"network_segmentation_policy.go"}, "", []behaviour{
		{"a policy without rules denies ingress: layer2", proved(primary("policies/of/*"))},
		{"a policy without rules denies ingress: layer3", proved(primary("policies/of/*"))},
		{"a policy without rules denies ingress, with a chosen gateway",
			untried("Policies do not depend on the router's addresses.")},
		{"a policy lets pods of another namespace in: layer3", proved(shared)},
		{"that policy denies other pods of the network", proved(shared)},
		{"a policy lets pods of another namespace in: layer2",
			untried("The topology decides only which switches have the rows.",
				unit("translate/policy/oracle_primary_test.go", "TestPrimaryRowsDoWhatKubernetesPromises"))},
		{"a pod waits until its namespace has a network",
			proved(unit("allocate/primary_test.go", "TestPodsWaitForTheirPrimaryNetwork"))},
		{"a policy counts pods of a namespace that joins later",
			proved(primary("tenants/two namespaces/not selected any more"), later)},
		{"ICMP passes a policy that denies all, layer2 and layer3", notServed(icmp, comingPage)},
	}}
}

func primaryServices() group {
	services, outside := primary("tenants/*/services"), primary("tenants/*/outside")
	return group{"Primary networks: Services", []string{"network_segmentation_services.go"}, "", []behaviour{
		{"a pod on the backend's node, and on another, asks the ClusterIPs", proved(services)},
		{"Services in networks of layer2, layer3, and with a chosen gateway", proved(services)},
		{"pods of the network ask the node port of each node", proved(services)},
		{"a host outside asks the node port of each node", proved(services)},
		{"pods of the network, and hosts outside, ask the load balancer's address", proved(services)},
		{"pods of the cluster's own network ask the node port of each node", proved(services)},
		{"these pods do not reach the ClusterIPs of a Service without node ports", proved(services)},
		{"pods of the cluster's own network do not reach the ClusterIPs of a Service with node ports",
			notServed("Whoever asks for a node port lets "+
				"everybody in, so the ClusterIPs answer as well.", outsidePage)},
		{"a pod does not reach ClusterIPs of the cluster's own network", proved(outside)},
		{"a pod asks node ports of Services of the cluster's own network", proved(outside)},
		{"a pod does not reach load balancers' addresses of the cluster's own network", untried("No " +
			"page says what happens.")},
	}}
}

func mirroring() group {
	const copies = "Nobody writes copies of EndpointSlices. The master puts the addresses of the network in their place."
	const adr = "adr/0062-services-of-primary-networks.md"
	slices := unit("cluster/primaryservice_test.go", "TestSlicesIn")
	return group{"Primary networks: EndpointSlices", []string{"network_segmentation_endpointslices_mirror.go"}, "",
		[]behaviour{
			{"endpoints have the pods' addresses in the network, layer2 and layer3", proved(primary("tenants/*/services"),
				slices)},
			{"without a primary network, endpoints stay as they are", proved(slices)},
			{"pods in the host network are endpoints of the network's Services", notServed("Endpoints that are not pods of "+
				"the network are left out.", primaryPage+"#services")},
			{"a copy of a slice is made, and again when somebody deletes it", notNeeded(copies, adr)},
			{"the copy of a slice goes with the Service", notNeeded(copies, adr)},
		}}
}

func preconfigured() group {
	wrong := unit("kube/attachment/userdefined_test.go", "TestUserDefinedThatIsNotValid")
	asked, full := unit("allocate/preferred_test.go", "TestPreferred"), unit("allocate/preferred_test.go",
		"TestReservedAddressesOfFullNetwork")
	return group{"Primary networks: the router's and reserved addresses",
		[]string{"network_segmentation_preconfigured_layer2.go"}, "", []behaviour{
			{"the router has the first address of the range", proved(unit("allocate/primary_test.go", "TestPrimary"))},
			{"the router has the addresses that the network chooses", proved(primary("chosen addresses"))},
			{"the router has the second address of the range", proved(primary("chosen addresses"),
				unit("allocate/preferred_test.go", "TestRoutersOfPrimaryNetwork"))},
			{"a pod gets no reserved address unless it asks", proved(asked, full)},
			{"a reserved IPv4 range with host bits is refused", proved(wrong)},
			{"a reserved IPv6 range with host bits is refused", proved(wrong)},
			{"an infrastructure range with host bits is refused, IPv4 and IPv6", proved(wrong)},
			{"a second pod that asks for an IPv4 address that is taken waits", proved(asked)},
			{"a second pod that asks for an IPv6 address that is taken waits", proved(asked)},
		}}
}

func annotation() group {
	chosen := primary("chosen addresses")
	return group{"Primary networks: addresses that a pod asks for",
		[]string{"network_segmentation_default_network_annotation.go"}, "", []behaviour{
			{"a pod has the addresses and the MAC that it asks for", proved(chosen)},
			{"a pod has what it asks for where claims keep addresses", proved(chosen)},
			{"a second pod that asks for the same MAC waits, and an Event says so", proved(chosen)},
			{"the annotation of a running pod cannot be added, changed or removed", notServed("Nothing refuses it. The pod "+
				"loses its interface when the master next starts.", chosenPage)},
		}}
}
