package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// examples are command lines for each command's --help, without the program's name.
func examples() []string {
	return []string{
		"master --nb-address ssl:192.0.2.1:6641 --nb-privkey nb.key --nb-cert nb.crt --nb-cacert ca.crt --kubeconfig m.conf",
		"master --nb-address unix:/run/ovn/ovnnb_db.sock --kubeconfig m.conf --dry-run",
		"node --node-name n1 --sb-address ssl:192.0.2.1:6642 --sb-privkey sb.key --sb-cert sb.crt --sb-cacert ca.crt",
		"node --node-name n1 --gateway-mode shared --gateway-interface breth0",
		"preflight",
		"doctor",
		"doctor -o json",
		"translate -f web.yaml",
		"translate -f web.yaml -o dot",
		"plan",
		"plan -f incident.tgz",
		"approve",
		"approve --digest DIGEST",
		"explain svc/web -n shop",
		"explain pod/web-1 -n shop -o json",
		"explain --row 04541828-70be-5a0f-a0e0-3a33dd807c8a",
		"explain --acl - < ovn-controller.log",
		"policy check shop/web-1 svc/shop/db:5432",
		"policy check shop/web-1 192.0.2.7:443 -f cluster.yaml",
		"policy matrix -n shop",
		"policy diff -f new-policy.yaml",
		"policy diff --delete np/shop/web",
		"tenant list",
		"tenant join shop-dev shop-test --to shop",
		"tenant isolate shop",
		"tenant global monitoring",
		"objects > cluster.yaml",
		"master-init --cluster-ip-subnet 192.168.0.0/16 --master-switch-subnet 192.168.1.0/24 --node-name n1",
		"minion-init --cluster-ip-subnet 192.168.0.0/16 --minion-switch-subnet 192.168.2.0/24 --node-name n2",
		"gateway-init --cluster-ip-subnet 192.168.0.0/16 --bridge-interface breth0 --physical-ip 192.0.2.5/24 --node-name n2",
		"gateway-helper --physical-bridge breth0 --physical-interface eth0",
		"watcher --overlay",
		"nics-to-bridge eth0",
		"nics-to-bridge eth0 --confirm-target 192.0.2.1",
		"bridges-to-nic breth0",
		"signer",
		"certificates --for node --node-name n1 --directory /var/lib/northbound/certificates",
		"database serve --database nb --node-name n1",
		"database maintain --node-name n1",
		"openvswitch database",
		"openvswitch switch",
		"openvswitch switch --datapath-type netdev --tunnel-interface eth1",
		"diagnostics --for node --node-name n1",
		"metrics --daemon 127.0.0.1:9410 --listen :9420",
		"tcpdump shop/web-1 -c 10 tcp port 80",
		"cleanup node --dry-run",
		"cleanup cluster",
		"completion bash > /etc/bash_completion.d/ovnkube",
		"man | man -l -",
		"version -o json",
	}
}

// addExamples adds to the descriptions of commands, and of their subcommands.
func addExamples(commands []*cli.Command, path string) {
	for _, c := range commands {
		name := path + c.Name
		var lines []string
		for _, e := range examples() {
			if e == name || strings.HasPrefix(e, name+" ") {
				lines = append(lines, "   ovnkube "+e)
			}
		}
		if len(c.Subcommands) > 0 {
			addExamples(c.Subcommands, name+" ")
		}
		if len(lines) > 0 && (len(c.Subcommands) == 0 || c.Name == "explain") {
			c.Description = strings.TrimPrefix(c.Description+"\n\n", "\n\n") + examplesHeading + strings.Join(lines, "\n")
		}
	}
}

// examplesHeading is the line above the examples.
const examplesHeading = "Examples:\n"
