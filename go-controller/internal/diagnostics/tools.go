package diagnostics

import "slices"

// Tools lists all tools.
func Tools() []Tool { return slices.Concat(nodeTools(), masterTools(), databaseTools()) }

// Find is the tool of a name at a place, or nil.
func Find(p Place, name string) *Tool {
	for _, t := range Tools() {
		if t.Place == p && t.Name == name {
			return &t
		}
	}
	return nil
}

// flags are options without values.
func flags(names ...string) (out []Option) {
	for _, n := range names {
		out = append(out, Option{Name: n})
	}
	return out
}

// values are options with any value.
func values(names ...string) (out []Option) {
	for _, n := range names {
		out = append(out, Option{Name: n, Value: true})
	}
	return out
}

// tableOptions are options of ovs-vsctl, ovn-nbctl and ovn-sbctl that only change what is printed; format is the only
// one that may be asked for, "" for any. Source: ovs-vsctl(8).
func tableOptions(format string) []Option {
	return slices.Concat(
		[]Option{{Name: "--format", Value: true, Only: format}, {Name: "-f", Value: true, Only: format}},
		values("--data", "--columns"), flags("--no-headings", "--bare", "--pretty", "--if-exists", "--oneline"))
}

// readRows are commands of ovs-vsctl, ovn-nbctl and ovn-sbctl that read rows of any table. --dry-run, in the tools'
// programs, is a second barrier against writing.
func readRows(more ...string) []string {
	return append([]string{"show", "list", "find", "get"}, more...)
}

func nodeTools() []Tool {
	return []Tool{
		{Name: "doctor", Place: Node, Account: Viewer, Program: []string{"ovnkube", "doctor"},
			Usage:   "diagnose nodes: print what is wrong, and the commands that fix it",
			Options: values("-o", "--output", "--timeout")},
		{Name: "vsctl", Place: Node, Account: Viewer, Program: []string{"ovs-vsctl", "--timeout=10", "--dry-run"},
			Usage: "read a node's Open vSwitch database with ovs-vsctl", Options: tableOptions("json"),
			Redact: true, Check: checkSecrets, Commands: readRows("list-br", "list-ports", "list-ifaces", "br-exists",
				"port-to-br", "iface-to-br", "br-get-external-id", "get-controller", "get-manager", "get-fail-mode")},
		{Name: "ofctl", Place: Node, Account: Viewer, Program: []string{"ovs-ofctl", "--timeout=30"}, Check: checkBridge,
			Usage: "read a bridge's flows, ports and groups with ovs-ofctl",
			Commands: []string{"show", "dump-flows", "dump-aggregate", "dump-tables", "dump-ports", "dump-ports-desc",
				"dump-desc", "dump-groups", "dump-group-stats", "dump-meters", "meter-stats", "dump-tlv-map"},
			Options: slices.Concat(values("-O", "--protocols"),
				flags("--names", "--no-names", "--no-stats", "--stats", "--sort", "--rsort"))},
		{Name: "appctl", Place: Node, Account: Viewer, Usage: "ask ovs-vswitchd or ovn-controller with ovs-appctl",
			Check: checkTrace,
			Targets: map[string][]string{
				"ovs-vswitchd":   {"ovs-appctl", "--timeout=30", "-t", "ovs-vswitchd"},
				"ovsdb-server":   {"ovs-appctl", "--timeout=30", "-t", "ovsdb-server"},
				"ovn-controller": {"ovn-appctl", "--timeout=30", "-t", "ovn-controller"},
			},
			Commands: []string{"version", "list-commands", "memory/show", "coverage/show", "vlog/list",
				"dpif/show", "dpctl/dump-flows", "dpctl/dump-conntrack", "dpctl/ct-stats-show",
				"dpctl/ct-get-limits", "dpctl/show", "dpif/dump-flows", "dpif-netdev/pmd-stats-show",
				"fdb/show", "ofproto/list", "ofproto/trace", "ofproto/list-tunnels", "ovs/route/show",
				"tnl/arp/show", "tnl/neigh/show", "tnl/ports/show", "upcall/show", "bond/show", "lacp/show",
				"bfd/show", "connection-status", "ct-zone-list", "group-table-list", "meter-table-list",
				"debug/status", "lflow-cache/show-stats", "inc-engine/show-stats", "stopwatch/show"},
			Options: flags("--names", "--more", "-m", "-s")},
		{Name: "ip", Place: Node, Account: Viewer, Program: []string{"ip"}, Check: checkIP,
			Usage:    "show a node's addresses, routes and links",
			Commands: []string{"address show", "link show", "neighbour show", "route show", "route get", "rule show"},
			Options:  flags("-4", "-6", "-br", "-d", "-s", "-j", "-p", "-o")},
		{Name: "tcpdump", Place: Node, Account: Capturer, Program: []string{"ovnkube", "tcpdump"}, Check: checkExpression,
			Usage: "show or save the packets of a pod",
			Options: slices.Concat(flags("-e", "-n", "-nn", "-v", "-vv", "-q", "-t", "-tt", "-ttt", "-x", "-xx", "-X", "-A",
				"-l",
				"-U"), values("-c", "-s"), []Option{{Name: "-w", Value: true, Only: "-"}})},
	}
}

// masterTools are commands of ovnkube, in the environment of a master.
func masterTools() []Tool {
	options := values("-o", "--output", "-n", "--namespace", "--timeout")
	return []Tool{
		{Name: "explain", Place: Master, Account: Viewer, Program: []string{"ovnkube", "explain"},
			Usage:   "explain how the network serves an object, and which Northbound rows it has",
			Options: slices.Concat(options, values("--acl", "--row"))},
		{Name: "plan", Place: Master, Account: Viewer, Program: []string{"ovnkube", "plan"},
			Options: values("-o", "--output", "--timeout"),
			Usage:   "print what the master would change in the Northbound database now"},
		{Name: "policy", Place: Master, Account: Viewer, Program: []string{"ovnkube", "policy"}, Options: options,
			Usage: "ask who may connect to whom, and which rule says so", Commands: []string{"check", "matrix"}},
		{Name: "tenant", Place: Master, Account: Viewer, Program: []string{"ovnkube", "tenant"}, Options: options,
			Usage: "list the namespaces with their tenants", Commands: []string{"list"}},
		{Name: "objects", Place: Master, Account: Viewer, Program: []string{"ovnkube", "objects"},
			Usage: "print the objects that the network depends on, as one manifest", Options: values("--timeout")},
	}
}

func databaseTools() []Tool {
	const nb, sb = "--db=unix:/run/ovn/ovnnb_db.sock", "--db=unix:/run/ovn/ovnsb_db.sock"
	return []Tool{
		{Name: "nbctl", Place: Database, Account: Viewer, Usage: "read the Northbound database with ovn-nbctl",
			Program: []string{"ovn-nbctl", "--timeout=30", "--no-leader-only", "--dry-run", nb}, Options: tableOptions(""),
			Commands: readRows("ls-list", "lr-list", "lsp-list", "lrp-list", "lb-list", "ls-lb-list", "lr-lb-list",
				"lr-route-list", "lr-policy-list", "lr-nat-list", "acl-list", "qos-list", "lsp-get-addresses",
				"lsp-get-port-security", "lsp-get-type", "lsp-get-options", "lsp-get-up", "lsp-get-enabled", "meter-list",
				"ls-copp-list", "lr-copp-list")},
		{Name: "sbctl", Place: Database, Account: Viewer, Usage: "read the Southbound database with ovn-sbctl",
			Program:  []string{"ovn-sbctl", "--timeout=60", "--no-leader-only", "--dry-run", sb},
			Commands: readRows("lflow-list", "dump-flows", "count-flows"),
			Options:  slices.Concat(tableOptions(""), flags("--uuid", "--stats"))},
		{Name: "backup", Place: Database, Account: Viewer,
			Usage: "print a copy of a database, for `ovsdb-tool` or ovsdb-server",
			Targets: map[string][]string{
				"nb": {"ovsdb-client", "--timeout=300", "backup", "unix:/run/ovn/ovnnb_db.sock"},
				"sb": {"ovsdb-client", "--timeout=300", "backup", "unix:/run/ovn/ovnsb_db.sock"},
			},
			Commands: []string{"OVN_Northbound", "OVN_Southbound"}},
		{Name: "trace", Place: Database, Account: Viewer, Usage: "simulate a packet's way with ovn-trace",
			Program: []string{"ovn-trace", "--no-leader-only", sb},
			Options: slices.Concat(values("--ct", "--lb-dst", "--select-id"),
				flags("--detailed", "--summary", "--minimal", "--all", "--no-friendly-names"))},
		{Name: "database", Place: Database, Account: Viewer,
			Usage: "ask a database's server, or ovn-northd, with ovs-appctl",
			Targets: map[string][]string{
				"nb":     {"ovs-appctl", "--timeout=30", "-t", "/run/ovn/ovnnb_db.ctl"},
				"sb":     {"ovs-appctl", "--timeout=30", "-t", "/run/ovn/ovnsb_db.ctl"},
				"northd": {"ovs-appctl", "--timeout=30", "-t", "/run/ovn/ovn-northd.ctl"},
			},
			Commands: []string{"version", "list-commands", "memory/show", "coverage/show", "vlog/list", "cluster/status",
				"ovsdb-server/list-dbs", "ovsdb-server/list-remotes", "status", "nb-connection-status", "sb-connection-status",
				"stopwatch/show", "inc-engine/show-stats"}},
		{Name: "disk", Place: Database, Account: Viewer, Check: checkNothing,
			Usage: "print how large the databases' files are, or how much space is left for them",
			Targets: map[string][]string{
				"files": {"stat", "--format=%s %n", "/var/lib/ovn/ovnnb_db.db", "/var/lib/ovn/ovnsb_db.db"},
				"space": {"df", "--human-readable", "/var/lib/ovn"},
			}},
	}
}
