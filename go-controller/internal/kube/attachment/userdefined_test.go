package attachment

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

func TestUserDefined(t *testing.T) {
	prefix := netip.MustParsePrefix
	for spec, want := range map[string]cluster.Network{
		`{"topology":"Layer2","layer2":{"role":"Secondary","subnets":["fd99::/64","10.99.0.0/24"],"mtu":1300,` +
			`"ipam":{"mode":"Enabled","lifecycle":"Persistent"}}}`: {Topology: cluster.Layer2, MTU: 1300, Persistent: true,
			Subnets: []config.ClusterSubnet{{CIDR: prefix("10.99.0.0/24")}, {CIDR: prefix("fd99::/64")}}},
		`{"topology":"Layer2","layer2":{"role":"Secondary","ipam":{"mode":"Disabled"}}}`: {Topology: cluster.Layer2},
		`{"topology":"Layer3","layer3":{"role":"Secondary","subnets":[{"cidr":"10.98.0.0/16","hostSubnet":26},` +
			`{"cidr":"fd98::/48"}]}}`: {Subnets: []config.ClusterSubnet{{CIDR: prefix("10.98.0.0/16"), NodeLength: 26},
			{CIDR: prefix("fd98::/48"), NodeLength: 64}}},
	} {
		want.Name, want.UserDefined = "shop.blue", true
		got, err := UserDefined(blue(), []byte(spec))
		if err != nil || !got.Equal(&want) {
			t.Errorf("%s: %+v, %v; want %+v", spec, got, err, want)
		}
	}
}

func TestUserDefinedThatIsNotValid(t *testing.T) {
	for spec, want := range map[string]string{
		"null":                    `spec.topology: "", want Layer2, Layer3`,
		"[]":                      "reading spec",
		`{"topology":"Localnet"}`: `spec.topology: "Localnet", want Layer2 or Layer3`,
		`{"topology":"Layer2"}`:   "want the field layer2",
		`{"topology":"Layer3","layer2":{},"layer3":{}}`:      "and no other topology's",
		`{"colour":"blue"}`:                                  `unknown field "colour"`,
		`{"topology":"Layer2","layer2":{}}`:                  `spec.layer2.role: "", want Primary or Secondary`,
		`{"topology":"Layer3","layer3":{}}`:                  `spec.layer3.role: "", want Primary or Secondary`,
		`{"topology":"Layer2","layer2":{"role":"Tertiary"}}`: `role: "Tertiary", want Primary or Secondary`,
		`{"topology":"Layer2","layer2":{"role":"Primary","subnets":["10.99.0.0/24"],"joinSubnets":["x"]}}`: "want a range",
		`{"topology":"Layer2","layer2":{"role":"Primary","ipam":{"mode":"Disabled"}}}`:                     "subnets: none",
		`{"topology":"Layer2","layer2":{"role":"Primary","reservedSubnets":["10.9.0.0/28"]}}`:              "subnets: none",
		`{"topology":"Layer2","layer2":{"role":"Primary","infrastructureSubnets":["10.9.0.0/30"]}}`:        "subnets: none",
	} {
		wrong(t, spec, want)
	}
	for fields, want := range map[string]string{
		`"joinSubnets":["10.0.0.0/8"]`:                      "spec.layer2: joinSubnets: 10.0.0.0/8 overlaps",
		`"joinSubnets":["100.70.0.0/16","100.80.0.0/16"]`:   "joinSubnets: 100.70.0.0/16 and 100.80.0.0/16 are of one",
		`"joinSubnets":["fd70::/64"]`:                       "joinSubnets: fd70::/64 lacks one of IPv4",
		`"joinSubnets":["100.70.0.0/30"]`:                   "joinSubnets: 100.70.0.0/30: want a range of 256",
		`"reservedSubnets":["10.98.0.0/24"]`:                "reservedSubnets: 10.98.0.0/24 is in none of subnets",
		`"reservedSubnets":["10.99.0.0/25","10.99.0.0/26"]`: "reservedSubnets: 10.99.0.0/26 overlaps 10.99.0.0/25",
		`"reservedSubnets":["10.99.0.1/25"]`:                `parsing reservedSubnets "10.99.0.1/25": host bits`,
		`"reservedSubnets":["fd99::1/64"]`:                  `parsing reservedSubnets "fd99::1/64": host bits`,
		`"infrastructureSubnets":["10.99.0.1/30"]`:          `parsing infrastructureSubnets "10.99.0.1/30": host bits`,
		`"infrastructureSubnets":["fd99::1/126"]`:           `parsing infrastructureSubnets "fd99::1/126": host bits`,
		`"infrastructureSubnets":["10.98.0.0/24"]`:          "infrastructureSubnets: 10.98.0.0/24 is in none of subnets",
		`"infrastructureSubnets":["10.99.0.0/30"],"reservedSubnets":["10.99.0.0/24"]`: "infrastructureSubnets: " +
			"10.99.0.0/30 overlaps 10.99.0.0/24 of reservedSubnets",
		`"infrastructureSubnets":["10.99.0.0/30"],"defaultGatewayIPs":["10.99.0.9"]`: "defaultGatewayIPs: 10.99.0.9 is in " +
			"none of infrastructureSubnets",
		`"defaultGatewayIPs":["10.99.0.0"]`:             "defaultGatewayIPs: 10.99.0.0 is not one for hosts in subnets",
		`"defaultGatewayIPs":["10.99.0.255"]`:           "defaultGatewayIPs: 10.99.0.255 is not one for hosts in subnets",
		`"defaultGatewayIPs":["fd99::1"]`:               "defaultGatewayIPs: fd99::1 is not one for hosts in subnets",
		`"defaultGatewayIPs":["10.99.0.1","10.99.0.2"]`: "defaultGatewayIPs: 10.99.0.1,10.99.0.2: want one of each",
		`"defaultGatewayIPs":["first"]`:                 `defaultGatewayIPs: "first", want an address`,
		`"defaultGatewayIPs":"10.99.0.1"`:               "defaultGatewayIPs: want a list of texts",
		`"reservedSubnets":["all"]`:                     `reservedSubnets: "all", want a range`,
		`"reservedSubnets":"10.99.0.0/25"`:              "reservedSubnets: want a list of texts",
	} {
		wrong(t, `{"topology":"Layer2","layer2":{"role":"Primary","subnets":["10.99.0.0/24"],`+fields+`}}`, want)
	}
	got, err := UserDefined(cluster.Name{Namespace: "shop", Name: "blue"}, []byte(
		`{"topology":"Layer2","layer2":{"role":"Primary","subnets":["10.99.0.0/24"],"joinSubnets":["100.70.0.0/16"],`+
			`"reservedSubnets":["10.99.0.0/28"]}}`))
	if err != nil || !got.Primary || got.Topology != cluster.Layer2 || fmt.Sprint(got.JoinSubnets) != "[100.70.0.0/16]" ||
		fmt.Sprint(got.Reserved) != "[10.99.0.0/28]" {
		t.Errorf("%+v, %v; want a primary network", got, err)
	}
	for fields, want := range map[string]string{
		`"defaultGatewayIPs":["10.99.0.254","fd99::fe"]`: "[10.99.0.254 fd99::fe] []",
		`"infrastructureSubnets":["10.99.0.0/30","fd99::/126","10.99.0.8/32"]`: "[10.99.0.1 fd99::1] " +
			"[10.99.0.0/30 fd99::/126 10.99.0.8/32]",
		`"infrastructureSubnets":["10.99.0.16/30"]`:                                  "[10.99.0.16] [10.99.0.16/30]",
		`"infrastructureSubnets":["10.99.0.0/30"],"defaultGatewayIPs":["10.99.0.2"]`: "[10.99.0.2] [10.99.0.0/30]",
		`"infrastructureSubnets":["10.99.0.0/32","fd99::9/128"],"reservedSubnets":["fd99::/125"]`: "[fd99::9] " +
			"[10.99.0.0/32 fd99::9/128]",
	} {
		got, err := UserDefined(blue(), []byte(`{"topology":"Layer2","layer2":{"role":"Primary","subnets":["10.99.0.0/24",`+
			`"fd99::/64"],`+fields+`}}`))
		if err != nil || fmt.Sprint(got.Routers, got.Excluded) != want {
			t.Errorf("%s: %+v, %v; want %s", fields, got, err, want)
		}
	}
	for fields, want := range map[string]string{
		`"colour":"blue"`:     `unknown field "layer2.colour"`,
		`"ipam":{"colour":1}`: `unknown field "layer2.ipam.colour"`,
		`"mtu":1300`:          "spec.layer2.subnets: none",
		`"subnets":["9.0.0.0/8"],"ipam":{"mode":"Disabled"}`: "want none where",
		`"subnets":["9.0.0.0/8"],"ipam":{"mode":"Off"}`:      `ipam.mode: "Off"`,
		`"subnets":[]`:                "spec.layer2.subnets: none",
		`"ipam":{"lifecycle":"Long"}`: `spec.layer2.ipam.lifecycle: "Long", want Persistent`,
		`"ipam":{"lifecycle":"Persistent","mode":"Disabled"}`: "ipam.lifecycle: want none where ipam.mode is Disabled",
		`"joinSubnets":["10.1.0.0/24"]`:                       "joinSubnets: only a network of role Primary",
		`"reservedSubnets":[]`:                                "reservedSubnets: only",
		`"infrastructureSubnets":[]`:                          "infrastructureSubnets: only",
		`"defaultGatewayIPs":[]`:                              "defaultGatewayIPs: only",
		`"subnets":["10.9.0.0/24,10.8.0.0/24"]`:               "want a range such as",
		`"subnets":["10.9.0.0/24","10.8.0.0/24"]`:             "are of one address family",
		`"subnets":["10.9.0.1/24"]`:                           "host bits are set",
		`"subnets":["fd99::/64"],"mtu":1000`:                  "spec.layer2: mtu: 1000, want 1280",
		`"subnets":["fd99::/64"],"mtu":"much"`:                "reading spec",
	} {
		wrong(t, `{"topology":"Layer2","layer2":{"role":"Secondary",`+fields+`}}`, want)
	}
	for subnets, want := range map[string]string{
		`[]`:                           "subnets: 0, want one",
		`[{"cidr":"10.98.0.0/16/24"}]`: "want a range such as",
		`[{"cidr":"10.98.0.0/16","hostSubnet":8}]`:                            "spec.layer3: subnets:",
		`[{"cidr":"10.98.0.0/16","hostSubnet":-1}]`:                           "spec.layer3: subnets:",
		`[{"cidr":"10.98.0.0/16","x":1}]`:                                     `subnets[0].x"`,
		`[{"cidr":"10.98.0.0/16"}],"ipam":{"lifecycle":"Persistent"}`:         "spec.layer3.ipam: in a Layer3 network",
		`[{"cidr":"10.98.0.0/16"}],"joinSubnets":[]`:                          "joinSubnets: only",
		`[{"cidr":"10.98.0.0/16"},{"cidr":"10.1.0.0/16"}]`:                    "one address family",
		`[{"cidr":"10.98.0.0/16"},{"cidr":"fd98::/48"},{"cidr":"fd97::/48"}]`: "subnets: 3, want",
	} {
		wrong(t, `{"topology":"Layer3","layer3":{"role":"Secondary","subnets":`+subnets+`}}`, want)
	}
	long := cluster.Name{Namespace: "shop", Name: strings.Repeat("n", 253)}
	bare := `{"topology":"Layer2","layer2":{"role":"Secondary","ipam":{"mode":"Disabled"}}}`
	if _, err := UserDefined(long, []byte(bare)); err == nil {
		t.Error("a name of 253 characters is taken")
	}
}

// wrong checks that a spec is refused, with a text in the error.
func wrong(t *testing.T, spec, want string) {
	t.Helper()
	got, err := UserDefined(blue(), []byte(spec))
	if got != nil || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %+v, %v; want %q", spec, got, err, want)
	}
}

func TestClusterUserDefined(t *testing.T) {
	prefix := netip.MustParsePrefix
	for network, want := range map[string]cluster.Network{
		`"topology":"Layer2","layer2":{"role":"Secondary","subnets":["10.99.0.0/24"],"ipam":{"lifecycle":"Persistent"}}`: {
			Topology: cluster.Layer2, Persistent: true,
			Subnets: []config.ClusterSubnet{{CIDR: prefix("10.99.0.0/24")}}},
		`"topology":"Layer3","layer3":{"role":"Secondary","subnets":[{"cidr":"10.98.0.0/16"}]}`: {
			Subnets: []config.ClusterSubnet{{CIDR: prefix("10.98.0.0/16"), NodeLength: 24}}},
		`"topology":"Localnet","localnet":{"role":"Secondary","physicalNetworkName":"lan","subnets":["192.0.2.0/24"],` +
			`"excludeSubnets":["192.0.2.0/28"],"mtu":1500,"vlan":{"mode":"Access","access":{"id":100}}}`: {
			Topology: cluster.Localnet, MTU: 1500, Excluded: []netip.Prefix{prefix("192.0.2.0/28")},
			Subnets:  []config.ClusterSubnet{{CIDR: prefix("192.0.2.0/24")}},
			Physical: cluster.Physical{Name: "lan", VLAN: 100}},
		`"topology":"Layer2","layer2":{"role":"Primary","subnets":["10.99.0.0/24"],"joinSubnets":["100.70.0.0/16"]}`: {
			Topology: cluster.Layer2, Primary: true, JoinSubnets: []netip.Prefix{prefix("100.70.0.0/16")},
			Subnets: []config.ClusterSubnet{{CIDR: prefix("10.99.0.0/24")}}},
		`"topology":"Localnet","localnet":{"role":"Secondary","physicalNetworkName":"lan","ipam":{"mode":"Disabled"}}`: {
			Topology: cluster.Localnet, Physical: cluster.Physical{Name: "lan"}},
		`"topology":"Localnet","localnet":{"role":"Secondary","physicalNetworkName":"lan","subnets":["192.0.2.0/24"],` +
			`"ipam":{"lifecycle":"Persistent"}}`: {Topology: cluster.Localnet, Persistent: true,
			Subnets:  []config.ClusterSubnet{{CIDR: prefix("192.0.2.0/24")}},
			Physical: cluster.Physical{Name: "lan"}},
	} {
		want.Name, want.UserDefined = ".blue", true
		spec := `{"namespaceSelector":{"matchLabels":{"a":"b"}},"network":{` + network + `}}`
		got, namespaces, err := ClusterUserDefined("blue", []byte(spec))
		if err != nil || !got.Equal(&want) || namespaces.MatchLabels["a"] != "b" {
			t.Errorf("%s: %+v, %v, %v; want %+v", network, got, namespaces, err, want)
		}
	}
}

func TestClusterUserDefinedThatIsNotValid(t *testing.T) {
	for fields, want := range map[string]string{
		`"role":"Primary"`:                              `spec.network.localnet.role: "Primary", want Secondary`,
		`"role":"Secondary"`:                            "physicalNetworkName: none",
		`"role":""`:                                     `spec.network.localnet.role: "", want Secondary`,
		`"physicalNetworkName":""`:                      "physicalNetworkName: none",
		`"vlan":{"mode":"Trunk"}`:                       `vlan: mode is "Trunk", want Access`,
		`"vlan":{"mode":"Access"}`:                      "and access.id",
		`"vlan":{"trunk":{}}`:                           `unknown field "network.localnet.vlan.trunk"`,
		`"excludeSubnets":["a"]`:                        `excludeSubnets: "a", want a range`,
		`"subnets":["a"]`:                               `subnets: "a", want a range`,
		`"physicalNetworkName":"a,b"`:                   "without colons, commas",
		`"ipam":{"lifecycle":"x"}`:                      "ipam.lifecycle",
		`"excludeSubnets":["1::/64"]`:                   "is in none of subnets",
		`"joinSubnets":["10.0.0.0/8"]`:                  "unknown field",
		`"vlan":{"mode":"Access","access":{"id":4095}}`: "vlan.access.id: 4095, want 1 to 4094",
		`"vlan":{"mode":"Access","access":{"id":0}}`:    "vlan.access.id: 0",
	} {
		all := fields
		for field, value := range map[string]string{
			"role": `"Secondary"`, "physicalNetworkName": `"lan"`, "subnets": `["192.0.2.0/24"]`,
		} {
			if !strings.Contains(fields, `"`+field+`":`) && !strings.HasPrefix(fields, `"role"`) {
				all += fmt.Sprintf(",%q:%s", field, value)
			}
		}
		wrongCluster(t, `{"namespaceSelector":{},"network":{"topology":"Localnet","localnet":{`+all+`}}}`, want)
	}
	const excluding = `{"namespaceSelector":{},"network":{"topology":"Localnet","localnet":{"role":"Secondary",` +
		`"physicalNetworkName":"lan","excludeSubnets":["192.0.2.0/28"],"ipam":{"mode":"Disabled"}}}}`
	wrongCluster(t, excluding, "is in none of subnets")
	for spec, want := range map[string]string{
		`{}`:                       "spec.namespaceSelector: none, want {}",
		`{"namespaceSelector":{}}`: `spec.network.topology: "", want Layer2`,
		`{"namespaceSelector":{"matchLabel":{}}}`:                              `field "namespaceSelector.matchLabel"`,
		`{"namespaceSelector":{},"network":{"topology":"Localnet"}}`:           "want the field localnet",
		`{"namespaceSelector":{},"network":{"topology":"Layer2","layer2":{}}}`: "spec.network.layer2.role",
	} {
		wrongCluster(t, spec, want)
	}
	const bare = `{"namespaceSelector":{},"network":{"topology":"Layer2","layer2":{"role":"Secondary",` +
		`"ipam":{"mode":"Disabled"}}}}`
	if _, _, err := ClusterUserDefined(strings.Repeat("n", 190), []byte(bare)); err == nil {
		t.Error("a name of 190 characters is taken")
	}
}

func wrongCluster(t *testing.T, spec, want string) {
	t.Helper()
	got, _, err := ClusterUserDefined("blue", []byte(spec))
	if got != nil || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %+v, %v; want %q", spec, got, err, want)
	}
}

func FuzzUserDefined(f *testing.F) {
	f.Add([]byte(`{"topology":"Layer2","layer2":{"role":"Secondary","subnets":["fd99::/64","10.99.0.0/24"]}}`))
	f.Add([]byte(`{"topology":"Layer3","layer3":{"role":"Secondary","subnets":[{"cidr":"10.9.0.0/16","hostSubnet":26}]}}`))
	f.Fuzz(func(t *testing.T, spec []byte) {
		n, err := UserDefined(blue(), spec)
		if (n == nil) == (err == nil) {
			t.Errorf("%q: %+v, %v", spec, n, err)
		}
		if n != nil && (!n.UserDefined || n.Name != "shop.blue" || n.Topology == cluster.Localnet) {
			t.Errorf("%q: %+v", spec, n)
		}
		if n, _, err := ClusterUserDefined("blue", spec); (n == nil) == (err == nil) {
			t.Errorf("%q: %+v, %v", spec, n, err)
		}
	})
}
