package networks

// serviceGroups are cases about Services of the cluster's own network.
func serviceGroups() []group {
	return []group{nodePorts(), otherServices(), loadBalancers(), otherFeatures()}
}

// everyService has all combinations of clients, backends, traffic policies, affinities, protocols and families.
func everyService() test { return inE2E("services/services_test.go", "TestEveryCombination", "") }

func fromOutside(subtest string) test {
	return inE2E("nodeport/nodeport_test.go", "TestFromOutside", subtest)
}

func hostBackends() test { return inE2E("hostback/hostback_test.go", "TestHostBackends", "*") }

func nodePorts() group {
	every, named := everyService(), spec("support named targetPorts")
	byName, further := fromOutside("further/named ports"), fromOutside("further/further addresses")
	return group{"Services: node ports", []string{"service.go"}, "", []behaviour{
		{"from another node to pods, policies Cluster and Local, TCP and UDP", proved(every)},
		{"from another node to backends on the host network, both policies",
			proved(every, fromOutside("externalTrafficPolicy Local"))},
		{"from another node to named ports, both policies", proved(byName)},
		{"large questions and answers over TCP", proved(spec("handle large requests: http"))},
		{"large questions and answers over UDP", proved(spec("handle large requests: udp"))},
		{"UDP goes on when the backend is replaced", proved(spec("when server pod cycles for a NodePort service"))},
		{"the node port answers at further addresses of the node's interfaces", proved(further)},
		{"the node port answers at addresses of a second NIC, both policies", proved(further)},
		{"the node port of backends that have an EgressIP answers", notServed("There are no EgressIPs.", comingPage)},
		{"a datagram in fragments reaches the backend, from OVN 26.03 on", proved(every)},
		{"a connection to the outside may have a node port as its source port", untried("No test " +
			"binds such a port.")},
		{"endpoints with different named ports share the load", proved(named)},
		{"endpoints on the host network with different named ports share the load", proved(byName)},
	}}
}

func otherServices() group {
	every := everyService()
	return group{"Services: ClusterIPs, affinity and hairpin", []string{"service.go"}, "", []behaviour{
		{"pods in the host network ask a Service with backends there", proved(hostBackends(), fromOutside(""))},
		{"session affinity keeps a client at one backend", proved(every,
			inE2E("service_test.go", "TestSessionAffinity", ""))},
		{"session affinity still holds after the client's backend is deleted",
			proved(inE2E("service_test.go", "TestSessionAffinity", ""))},
		{"a node's own connections to the outside do not have an address of the masquerade range", untried("The route to " +
			"such an address is checked, not that to the outside.")},
		{"Services work with endpoints at a further address of a node", proved(fromOutside("further/further addresses"))},
		{"a rolling update to another target port loses no connection", untried("Each part is tried: endpoints that " +
			"come, go and terminate.")},
		{"a pod reaches itself, which sees the address for hairpin", proved(spec("hairpin back to themselves"),
			primary("tenants/*/services"))},
		{"a backend on the host network that asks its own node port sees no such address", notServed("It sees "+
			"169.254.169.6 or fd69::6, which stands for the node itself.", "reference/service-clients.md")},
	}}
}

func loadBalancers() group {
	every, local, portless := everyService(), fromOutside("externalTrafficPolicy Local"),
		fromOutside("further/without node ports")
	path := inE2E("gateway/gateway_test.go", "TestGateway", "Services and the MTU")
	return group{"Services: load balancers' addresses", []string{"service.go"}, "", []behaviour{
		{"the Service still answers when a link on the way has a smaller MTU", notServed("Its pods are not always told.",
			"features/gateway.md#packets-that-are-too-large")},
		{"the sender learns the MTU, and all endpoints are reached", proved(path)},
		{"policy Local: endpoints of the node answer", proved(local, every)},
		{"policy Local without node ports", proved(portless,
			unit("translate/service/model_trace_test.go", "TestOVNTraceAgrees"))},
		{"policy Local without node ports, with named ports", proved(portless)},
		{"policy Local with session affinity", proved(every)},
		{"policy Local with backends that have an EgressIP", notServed("There are no EgressIPs.", comingPage)},
		{"routes to the addresses by BGP", notServed("Northbound announces no "+
			"routes. The network outside must have them.",
			"features/services-outside.md")},
	}}
}

// otherFeatures are kinds of upstream about networks that this project does not have.
func otherFeatures() group {
	const none = "There is no such kind."
	return group{"Other kinds of upstream about networks", []string{"egressip.go", "egress_firewall.go",
		"egress_services.go", "egressqos.go", "networkqos.go", "cluster_network_connect.go", "route_advertisements.go",
		"evpn.go", "no_overlay.go", "uplink.go", "vtep_api_validations.go"}, "", []behaviour{
		{"EgressIP for pods of a primary network", notServed(none, comingPage)},
		{"EgressFirewall in a primary network", notServed(none+" ClusterNetworkPolicies have rules of egress.",
			primaryPage+"#cluster-policies")},
		{"EgressService, EgressQoS and NetworkQoS", notServed(none, comingPage)},
		{"ClusterNetworkConnect: pods and Services of several networks", notServed(none, comingPage)},
		{"RouteAdvertisements, EVPN and VTEPs", notServed(none, comingPage)},
		{"primary networks without tunnels", notServed(none, comingPage)},
		{"Uplink: networks leave by another interface of the node", notServed(none, comingPage)},
	}}
}
