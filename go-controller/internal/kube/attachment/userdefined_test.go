package attachment

import (
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
			`"ipam":{"mode":"Enabled"}}}`: {Topology: cluster.Layer2, MTU: 1300,
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
	const more = `,"role":"Secondary"`
	layer2 := func(fields string) string { return `{"topology":"Layer2","layer2":{` + fields + `}}` }
	layer3 := func(fields string) string { return `{"topology":"Layer3","layer3":{` + fields + `}}` }
	for spec, want := range map[string]string{
		"null":                    `spec.topology: "", want Layer2`,
		"[]":                      "reading spec",
		`{"topology":"Localnet"}`: `spec.topology: "Localnet", want Layer2 or Layer3`,
		`{"topology":"Layer2"}`:   "want the field layer2",
		`{"topology":"Layer3","layer2":{},"layer3":{}}`:                                                "and no other topology's",
		`{"colour":"blue"}`:                                                                            `unknown field "colour"`,
		layer2(`"colour":"blue"` + more):                                                               `unknown field "layer2.colour"`,
		layer2(`"ipam":{"colour":1}` + more):                                                           `unknown field "layer2.ipam.colour"`,
		layer2(`"subnets":["10.99.0.0/24"]`):                                                           `spec.layer2.role: "", want Secondary`,
		layer2(`"role":"Primary"`):                                                                     "spec.layer2.role: Primary is not served",
		layer2(`"role":"Tertiary"`):                                                                    `"Tertiary"`,
		layer2(`"role":"Secondary"`):                                                                   "subnets: none",
		layer2(`"subnets":["10.9.0.0/24"],"ipam":{"mode":"Disabled"}` + more):                          "want none where",
		layer2(`"subnets":["10.9.0.0/24"],"ipam":{"mode":"Off"}` + more):                               `ipam.mode: "Off"`,
		layer2(`"subnets":["10.9.0.0/24"],"ipam":{"lifecycle":"x"}` + more):                            "spec.layer2.ipam.lifecycle",
		layer2(`"subnets":["10.9.0.0/24"],"joinSubnets":["10.1.0.0/24"]` + more):                       "joinSubnets: only a network of role",
		layer2(`"subnets":["10.9.0.0/24"],"reservedSubnets":[]` + more):                                "reservedSubnets: only",
		layer2(`"subnets":["10.9.0.0/24"],"infrastructureSubnets":[]` + more):                          "infrastructureSubnets: only",
		layer2(`"subnets":["10.9.0.0/24"],"defaultGatewayIPs":[]` + more):                              "defaultGatewayIPs: only",
		layer2(`"subnets":["10.9.0.0/24,10.8.0.0/24"]` + more):                                         "want a range such as",
		layer2(`"subnets":["10.9.0.0/24","10.8.0.0/24"]` + more):                                       "are of one address family",
		layer2(`"subnets":["10.9.0.1/24"]` + more):                                                     "host bits are set",
		layer2(`"subnets":["fd99::/64"],"mtu":1000` + more):                                            "spec.layer2: mtu: 1000, want 1280",
		layer2(`"subnets":["fd99::/64"],"mtu":"much"` + more):                                          "reading spec",
		layer3(`"subnets":[{"cidr":"10.98.0.0/16"}]`):                                                  "spec.layer3.role",
		layer3(`"subnets":[]` + more):                                                                  "subnets: 0, want one",
		layer3(`"subnets":[{"cidr":"10.98.0.0/16/24"}]` + more):                                        "want a range such as",
		layer3(`"subnets":[{"cidr":"10.98.0.0/16","hostSubnet":8}]` + more):                            "spec.layer3: subnets:",
		layer3(`"subnets":[{"cidr":"10.98.0.0/16","hostSubnet":-1}]` + more):                           "spec.layer3: subnets:",
		layer3(`"subnets":[{"cidr":"10.98.0.0/16"},{"cidr":"10.1.0.0/16"}]` + more):                    "one address family",
		layer3(`"subnets":[{"cidr":"10.98.0.0/16"},{"cidr":"fd98::/48"},{"cidr":"fd97::/48"}]` + more): "subnets: 3, want",
		layer3(`"subnets":[{"cidr":"10.98.0.0/16"}],"joinSubnets":[]` + more):                          "joinSubnets: only",
		layer3(`"subnets":[{"cidr":"10.98.0.0/16","x":1}]` + more):                                     `subnets[0].x"`,
	} {
		got, err := UserDefined(blue(), []byte(spec))
		if got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", spec, got, err, want)
		}
	}
	long := cluster.Name{Namespace: "shop", Name: strings.Repeat("n", 253)}
	if _, err := UserDefined(long, []byte(layer2(`"ipam":{"mode":"Disabled"}`+more))); err == nil {
		t.Error("a name of 253 characters is taken")
	}
}

func FuzzUserDefined(f *testing.F) {
	f.Add([]byte(`{"topology":"Layer2","layer2":{"role":"Secondary","subnets":["fd99::/64","10.99.0.0/24"]}}`))
	f.Add([]byte(`{"topology":"Layer3","layer3":{"role":"Secondary","subnets":[{"cidr":"10.98.0.0/16","hostSubnet":26}]}}`))
	f.Fuzz(func(t *testing.T, spec []byte) {
		n, err := UserDefined(blue(), spec)
		if (n == nil) == (err == nil) {
			t.Errorf("%q: %+v, %v", spec, n, err)
		}
		if n != nil && (!n.UserDefined || n.Name != "shop.blue" || n.Topology == cluster.Localnet) {
			t.Errorf("%q: %+v", spec, n)
		}
	})
}
