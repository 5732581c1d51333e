package attachment

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

func blue() cluster.Name { return cluster.Name{Namespace: "shop", Name: "blue"} }

// conf is a configuration of this project's plugin with more fields.
func conf(more string) string {
	return `{"cniVersion":"1.1.0","name":"b","type":"ovn-k8s-cni-overlay",` + more + `}`
}

func TestDefinition(t *testing.T) {
	prefix := netip.MustParsePrefix
	for text, want := range map[string]cluster.Network{
		`"topology":"layer2"`: {Topology: cluster.Layer2},
		`"topology":"layer2","subnets":"fd99::/64, 10.99.0.0/24","excludeSubnets":"10.99.0.0/30",` +
			`"mtu":1300,"role":"secondary"`: {
			Topology: cluster.Layer2, Excluded: []netip.Prefix{prefix("10.99.0.0/30")}, MTU: 1300, Subnets: []config.
					ClusterSubnet{{CIDR: prefix("10.99.0.0/24")}, {CIDR: prefix("fd99::/64")}}},
		`"topology":"layer3","subnets":"10.98.0.0/16/24","netAttachDefName":"shop/blue","ipam":{}`: {
			Subnets: []config.ClusterSubnet{{CIDR: prefix("10.98.0.0/16"), NodeLength: 24}}},
		`"topology":"layer2","subnets":"10.99.0.0/24","role":"primary"`: {Topology: cluster.Layer2, Primary: true,
			Subnets:     []config.ClusterSubnet{{CIDR: prefix("10.99.0.0/24")}},
			JoinSubnets: []netip.Prefix{prefix("100.66.0.0/15")}},
		`"topology":"layer3","subnets":"fd98::/48","role":"primary","joinSubnet":"fd70::/64"`: {Primary: true,
			Subnets:     []config.ClusterSubnet{{CIDR: prefix("fd98::/48"), NodeLength: 64}},
			JoinSubnets: []netip.Prefix{prefix("fd70::/64")}},
		`"topology":"localnet","vlanID":7`: {Topology: cluster.Localnet, Physical: cluster.Physical{Name: "b", VLAN: 7}},
		`"topology":"localnet","physicalNetworkName":"lan"`: {Topology: cluster.Localnet,
			Physical: cluster.Physical{Name: "lan"}},
	} {
		want.Name = "shop.blue"
		got, err := Definition(blue(), conf(text))
		if err != nil || !got.Equal(&want) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, foreign := range []string{"", " ", "{}", `{"type":"macvlan","colour":"blue"}`,
		`{"plugins":[{"type":"bridge"},{"type":"tuning"}]}`} {
		if got, err := Definition(blue(), foreign); got != nil || err != nil {
			t.Errorf("%s: %+v, %v; want another plugin's", foreign, got, err)
		}
	}
}

func TestDefinitionThatIsNotValid(t *testing.T) {
	for text, want := range map[string]string{
		`"topology":"layer4"`:                                        `topology: "layer4", want layer3`,
		`"colour":"blue"`:                                            `unknown field "colour"`,
		`"topology":"layer2","name":"c"`:                             "duplicate field",
		`"topology":"layer2","role":"tertiary"`:                      `role: "tertiary", want primary or secondary`,
		`"topology":"layer2","role":"primary"`:                       "subnets: none",
		`"topology":"layer2","joinSubnet":"100.66.0.0/16"`:           "only a network of role primary has one",
		`"topology":"layer2","netAttachDefName":"bank/vault"`:        `want "shop/blue", or nothing`,
		`"topology":"layer2","ipam":{"type":"host-local"}`:           "ipam: no such plugin is called",
		`"topology":"layer2","subnets":"10.99.0.1/24"`:               "host bits are set",
		`"topology":"layer2","subnets":"10.99.0.0/31"`:               "no room for pods",
		`"topology":"layer2","subnets":"10.99.0.0/24,10.98.0.0/24"`:  "are of one address family",
		`"topology":"layer2","subnets":"10.99.0.0/24/28"`:            "want a CIDR",
		`"topology":"layer2","excludeSubnets":"10.99.0.0/30"`:        "in none of subnets",
		`"topology":"layer3","subnets":""`:                           "want CIDR or CIDR/NODE-LENGTH",
		`"topology":"layer3","subnets":"10.0.0.0/8/24,10.98.0.0/16"`: "overlap",
		`"topology":"layer2","mtu":100`:                              "mtu: 100, want 576 to 65535",
		`"topology":"layer2","subnets":"fd99::/64","mtu":1000`:       "want 1280",
		`"topology":"layer2","vlanID":7`:                             "want topology localnet",
		`"topology":"localnet","vlanID":4095`:                        "want 1 to 4094",
		`"topology":"localnet","vlanID":-1`:                          "want 1 to 4094",
		`"topology":"localnet","physicalNetworkName":"a:b"`:          "without colons",
		`"topology":"layer2","mtu":"many"`:                           "reading spec.config",

		`"topology":"localnet","subnets":"10.99.0.0/24","role":"primary"`:                            "want topology layer2",
		`"topology":"layer2","subnets":"10.99.0.0/24","role":"primary","joinSubnet":"10.99.0.0/16"`:  "overlaps",
		`"topology":"layer2","subnets":"10.99.0.0/24","role":"primary","joinSubnet":"fd66::/64"`:     "of IPv4",
		`"topology":"layer2","subnets":"10.99.0.0/24","role":"primary","joinSubnet":"100.66.0.0/30"`: "want a",
		`"topology":"layer3","subnets":"10.98.0.0/16","excludeSubnets":"10.98.0.0/24"`:               "has none",
		`"topology":"layer2","subnets":"10.99.0.0/24","excludeSubnets":"10.99.0.0/25,10.99.0.0/26"`:  "overlap",
	} {
		if got, err := Definition(blue(), conf(text)); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"{": "reading spec.config", `{"plugins":[{"type":"ovn-k8s-cni-overlay"}]}`: "want it as the only plugin",
		`{"type":"ovn-k8s-cni-overlay","topology":"layer2"}`: "name: want the name of the network",
	} {
		if got, err := Definition(blue(), text); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", text, got, err, want)
		}
	}
}
