package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// parseNode returns the configuration that `ovnkube node ARGS` would run with.
func parseNode(args ...string) (n config.Node, err error) {
	command := nodeCommand()
	command.Action = func(c *cli.Context) error {
		if n, err = nodeSettings(c); err == nil {
			err = n.Validate()
		}
		return err
	}
	app := &cli.App{Name: "ovnkube", Commands: []*cli.Command{command}, ExitErrHandler: func(*cli.Context, error) {}}
	return n, app.Run(append([]string{"ovnkube", "node"}, args...))
}

func TestNodeFlags(t *testing.T) {
	n, err := parseNode("--node-name", "n1", "--sb-address", "ssl:10.0.0.1:6642",
		"--sb-privkey", "/k", "--sb-cert", "/c", "--sb-cacert", "/ca", "--insecure-databases",
		"--ovs-address", "unix:/x/db.sock",
		"--ovn-rundir", "/x/ovn", "--encap-ip", "10.0.0.2,fd00::2",
		"--encap-type", "geneve", "--datapath-type", "netdev", "--bridge-mappings", "physnet:br-phys", "--mtu", "1400",
		"--cni-conf-dir", "/c", "--cni-bin-dir", "/b", "--cni-socket-dir", "/s",
		"--metrics-bind-address", "127.0.0.1:0", "--cluster-subnets", "10.0.0.0/14/23,fd01::/48/64", "--k8s-service-cidrs",
		"10.96.0.0/16,fd02::/112",
		"--k8s-apiserver", "https://api", "--k8s-cacert", "/ca", "--k8s-token", "t", "--k8s-server-from", "/f",
		"--system-id", "n1-id", "--gateway-mode", "shared",
		"--gateway-interface", "eth0",
		"--gateway-nexthop", "10.0.0.9,fd00::9", "--gateway-vlan-id", "7", "--rampout-ip-subnets", "10.0.2.0/23,fd01::/64",
		"--gateway-node-label", "gateway=yes")
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", n)
	const want = "{Kubernetes:{Kubeconfig: APIServer:https://api CACert:/ca Token:t ServerFrom:/f} Name:n1 " +
		"ClusterSubnets:[10.0.0.0/14/23 fd01::/48/64] " +
		"ServiceCIDRs:[10.96.0.0/16 fd02::/112] JoinSubnets:[100.64.1.0/24 fd98::/64] " +
		"Services:{MaxVIPs:4096 MaxNamespaceVIPs:16384 MaxEndpoints:10000 ExternalCIDRs:[]} " +
		"OVSAddress:unix:/x/db.sock SystemID:n1-id SBAddress:ssl:10.0.0.1:6642 " +
		"SBKeys:{PrivKey:/k Cert:/c CACert:/ca} AllowTCP:true " +
		"EncapIPs:[10.0.0.2 fd00::2] EncapType:geneve DatapathType:netdev " +
		"BridgeMappings:[physnet:br-phys] Gateway:{Mode:shared Interface:eth0 NextHops:[10.0.0.9 fd00::9] VLAN:7 " +
		"Rampout:[10.0.2.0/23 fd01::/64] NodeLabel:gateway=yes} MTU:1400 OVNRunDir:/x/ovn CNIConfDir:/c CNIBinDir:/b " +
		"CNISocketDir:/s Metrics:127.0.0.1:0}"
	if got != want {
		t.Errorf("configuration:\n%s\nwant:\n%s", got, want)
	}
	t.Setenv("NORTHBOUND_NODE_NAME", "from-env")
	n, err = parseNode()
	want2 := config.DefaultNode()
	want2.Name = "from-env"
	if err != nil || fmt.Sprint(n) != fmt.Sprint(want2) {
		t.Errorf("without flags %+v, %v; want the default %+v", n, err, want2)
	}
}

func TestNodeFlagsWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"--node-name: the name":                       {},
		`parsing --encap-ip "x"`:                      {"--encap-ip", "x"},
		`parsing --bridge-mappings "x"`:               {"--bridge-mappings", "x"},
		"--cluster-subnets":                           {"--cluster-subnets", "10.0.0.1/14"},
		"--k8s-service-cidrs":                         {"--k8s-service-cidrs", "x"},
		`parsing --gateway-nexthop "x"`:               {"--gateway-nexthop", "x"},
		`parsing --gateway-node-label "=x"`:           {"--gateway-node-label", "=x"},
		`parsing --rampout-ip-subnets "x"`:            {"--rampout-ip-subnets", "x"},
		`--gateway-mode "x": want "shared"`:           {"--node-name", "n", "--gateway-mode", "x"},
		"--gateway-interface: the NIC":                {"--node-name", "n", "--gateway-mode", "shared"},
		`--datapath-type "x": want system`:            {"--node-name", "n", "--datapath-type", "x"},
		`invalid value "x" for flag -mtu`:             {"--node-name", "n", "--mtu", "x"},
		`--ovs-address "x": want unix:PATH`:           {"--node-name", "n", "--ovs-address", "x"},
		`--cni-conf-dir "x": want an absolute path`:   {"--node-name", "n", "--cni-conf-dir", "x"},
		`--cni-bin-dir "x": want an absolute path`:    {"--node-name", "n", "--cni-bin-dir", "x"},
		`--sb-address "1.2.3.4": want unix:PATH, tcp`: {"--node-name", "n", "--sb-address", "1.2.3.4"},
	} {
		if _, err := parseNode(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
}
