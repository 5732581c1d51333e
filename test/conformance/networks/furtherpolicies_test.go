package networks

func furtherPolicies() group {
	all, shared := further("policies/*"), userDefined("policies of the shared network")
	rows := golden("multi-network-policies.in.yaml")
	return group{"MultiNetworkPolicies", []string{"multihoming.go"}, "", []behaviour{
		{"selectors of pods, layer2", proved(all)},
		{"selectors of pods and a range of ports, layer2", proved(all)},
		{"selectors of pods, layer3", proved(all)},
		{"`ipBlock`, layer2 and layer3", proved(all)},
		{"`ipBlock` with `except`, layer2 and layer3", proved(all)},
		{"selectors of namespaces, layer2", proved(shared)},
		{"selectors of namespaces, layer3", untried("The topology decides only which switches have the rows.", rows)},
		{"`ipBlock` in a layer2 network without `subnets`", proved(all)},
		{"a policy of ingress does not concern what the pod begins itself", proved(all)},
		{"a port that is not that of the server lets nobody in", proved(all)},
	}}
}

func localnetPolicies() group {
	local := func(what string) behaviour { return behaviour{what, proved(secondary("VLAN/policies"))} }
	return group{"MultiNetworkPolicies of localnet networks", []string{"multihoming.go"}, "", []behaviour{
		local("egress to all but a host in the VLAN denies the host"),
		local("no ingress: the pod reaches a host in the VLAN"),
		local("no ingress, but all egress: the pod reaches a host in the VLAN"),
		local("all egress: the pod reaches a host in the VLAN"),
		local("no egress: the pod does not reach a host in the VLAN"),
		local("selectors of pods"),
		local("`ipBlock` with `except`"),
		local("selectors of namespaces"),
		local("all ingress: clients reach the pod"),
		local("no egress: clients reach the pod"),
		local("no ingress: clients do not reach the pod"),
		local("selectors of pods and a wrong range of ports"),
	}}
}
