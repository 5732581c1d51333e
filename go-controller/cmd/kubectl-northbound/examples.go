package main

// examples are command lines of each tool, without "kubectl northbound".
func examples() map[string][]string {
	return map[string][]string{
		"appctl":   {"appctl n1 ovn-controller connection-status", "appctl n1 ovs-vswitchd dpctl/dump-conntrack"},
		"backup":   {"backup nb OVN_Northbound > nb.db"},
		"database": {"database nb cluster/status OVN_Northbound", "database northd status"},
		"disk":     {"disk files", "disk space"},
		"doctor":   {"doctor", "doctor n1 n2", "doctor n1 -o json"},
		"explain": {"explain svc/web -n shop", "explain pod/shop/db-0 -o yaml",
			"explain --row=04541828-70be-5a0f-a0e0-3a33dd807c8a"},
		"ip":      {"ip n1 route show"},
		"nbctl":   {"nbctl show", "nbctl --columns=name,options find Logical_Switch_Port type=router"},
		"objects": {"objects > objects.yaml"},
		"ofctl":   {"ofctl n1 dump-flows br-int table=0"},
		"plan":    {"plan", "plan -o json"},
		"policy":  {"policy check shop/web-0 svc/shop/db:5432", "policy matrix -n shop"},
		"sbctl":   {"sbctl lflow-list n1", "sbctl --columns=name,hostname list Chassis"},
		"tcpdump": {"-n shop tcpdump web-0 -n -c 10", "tcpdump shop/web-0 -c 10 -w web.pcap icmp or icmp6"},
		"tenant":  {"tenant list"},
		"trace":   {"-n shop trace web-0 svc/db:5432", "trace shop/web-0 192.0.2.1"},
		"vsctl":   {"vsctl n1 show"},
	}
}
