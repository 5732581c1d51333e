package networks

const localnetPolicy = "The rows are those of layer2. Packets are not tried in a localnet network."

func furtherPolicies() group {
	all, shared := further("policies/*"), userDefined("policies of the shared network")
	follow := unit("cluster/index/furtherpolicies_test.go", "TestFurtherPoliciesFollow")
	const except = "The translation is that of NetworkPolicies, which are tried with packets."
	return group{"MultiNetworkPolicies", []string{"multihoming.go"}, []behaviour{
		{"selectors of pods, layer2", proved(all)},
		{"selectors of pods and a range of ports, layer2", untried(except, follow)},
		{"selectors of pods, layer3", proved(all)},
		{"`ipBlock`, layer2 and layer3", proved(all)},
		{"`ipBlock` with `except`, layer2 and layer3", untried(except, follow)},
		{"selectors of namespaces, layer2", proved(shared)},
		{"selectors of namespaces, layer3", untried("The topology decides only which switches have the rows.", follow)},
		{"`ipBlock` in a layer2 network without `subnets`", proved(all)},
		{"a policy of ingress does not concern what the pod begins itself", proved(all)},
		{"a port that is not that of the server lets nobody in", proved(all)},
	}}
}

func localnetPolicies() group {
	follow := unit("cluster/index/furtherpolicies_test.go", "TestFurtherPoliciesFollow")
	local := func(what string) behaviour { return behaviour{what, untried(localnetPolicy, follow)} }
	return group{"MultiNetworkPolicies of localnet networks", []string{"multihoming.go"}, []behaviour{
		local("egress to all but a host in the VLAN: the host is not reached"),
		local("ingress denied: egress to a host in the VLAN works"),
		local("ingress denied and all egress allowed: egress works"),
		local("all egress allowed: it works"),
		local("all egress denied: a host in the VLAN is not reached"),
		local("selectors of pods"),
		local("`ipBlock` with `except`"),
		local("selectors of namespaces"),
		local("all ingress allowed"),
		local("egress denied, with and without all ingress allowed: the pod is reached"),
		local("ingress denied"),
		local("selectors of pods and a wrong range of ports"),
	}}
}
