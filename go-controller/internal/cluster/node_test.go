package cluster

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

func whole() *Node {
	return &Node{Name: "n", ByHand: true, ChassisID: "0123",
		Annotated:     `{"default":["10.0.0.0/24","fd01::/64"]}`,
		JoinAnnotated: `{"default":{"ipv4":"100.64.1.2/24","ipv6":"fd98::2/64"}}`,
		Gateway: &annotation.L3Gateway{Bridge: "breth0", Network: "physnet", Port: "breth0_n", MAC: ipnet.MAC{2},
			IPs:      []netip.Prefix{netip.MustParsePrefix("172.18.0.3/16")},
			NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")},
			Rampout:  []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}}
}

// A record survives writing and reading, and embeds JSON as JSON.
func TestByHandRecord(t *testing.T) {
	for _, n := range []*Node{whole(), {Name: "n", ByHand: true}} {
		record := n.ByHandRecord()
		if strings.Contains(record, `\`) {
			t.Errorf("text within text: %s", record)
		}
		got, problems := ParseByHand("n", record)
		if len(problems) > 0 || !got.Equal(n) {
			t.Errorf("%s: %+v, %v", record, got, problems)
		}
	}
	for record, want := range map[string]string{
		"":                                    ReasonByHandRefused,
		"[]":                                  ReasonByHandRefused,
		`{"k8s.ovn.org/l3-gateway-config":7}`: ReasonGatewayRefused,
	} {
		n, problems := ParseByHand("n", record)
		if n == nil || n.Gateway != nil || len(problems) != 1 || problems[0].Reason != want {
			t.Errorf("%q: %+v, %v; want one %s", record, n, problems, want)
		}
	}
}

// A Node adopts the values that it lacks. It keeps an annotation that is malformed: package allocate refuses that.
func TestAdopt(t *testing.T) {
	bare := &Node{Name: "n", UID: "u"}
	if got := bare.Adopt(whole()); len(got) != 4 || len(bare.Annotations()) != 4 || bare.ByHand || bare.UID != "u" {
		t.Errorf("%v, %+v", got, bare)
	}
	own := &Node{Name: "n", ChassisID: "other", Annotated: `{"default":["10.0.9.0/24"]}`}
	if got := own.Adopt(whole()); len(got) != 2 || own.ChassisID != "other" ||
		own.Annotated != `{"default":["10.0.9.0/24"]}` || own.Gateway == nil {
		t.Errorf("%v, %+v", got, own)
	}
	if got := own.Adopt(whole()); got != nil {
		t.Errorf("a second time: %v", got)
	}
	bad := &Node{Name: "n", Annotated: "malformed"}
	if got := bad.Adopt(whole()); len(got) != 3 || bad.Gateway == nil || bad.Annotated != "malformed" {
		t.Errorf("%v, %+v", got, bad)
	}
}

// A node names its own chassis and its own gateway port, in a form that means one chassis and no other's port.
func TestHostileAnnotations(t *testing.T) {
	gateway := func(bridge, port, mac string) map[string]string {
		return map[string]string{annotation.L3GatewayConfig: `{"default":{"mode":"shared","bridge-id":"` + bridge +
			`","interface-id":"` + port + `","mac-address":"` + mac + `","ip-addresses":["172.18.0.3/16","fc00::3/64"]}}`}
	}
	chassis := func(id string) map[string]string { return map[string]string{annotation.NodeChassisID: id} }
	const mac = "02:42:ac:12:00:03"
	for what, c := range map[string]struct {
		annotations map[string]string
		reason      string // "" when nothing is refused
		part        string
	}{
		"its own chassis":        {chassis("2632b440-9508-5695-9b29-bfd1b7242114"), "", ""},
		"a host name as chassis": {chassis("worker-1.example"), "", ""},
		"two chassis": {chassis("own,other"),
			ReasonChassisRefused, `"own,other": want the system-id of one`},
		"a space in the chassis": {chassis("own other"), ReasonChassisRefused, "system-id"},
		"a quote in the chassis": {chassis(`a"b`), ReasonChassisRefused, "system-id"},
		"a very long chassis":    {chassis(strings.Repeat("a", 254)), ReasonChassisRefused, "system-id"},
		"a line break":           {chassis("a\nb"), ReasonChassisRefused, "system-id"},
		"its own port":           {gateway("breth0", "breth0_n", mac), "", ""},
		"its own NIC":            {gateway("br-int", "eth1_n", mac), "", ""},
		"a pod's port": {gateway("breth0", "default_web", mac),
			ReasonGatewayRefused, `interface-id "default_web" of bridge-id "breth0": want`},
		"a pod's port, in br-int": {gateway("br-int", "default_web", mac), ReasonGatewayRefused, "interface-id"},
		"a management port":       {gateway("breth0", "k8s-m", mac), ReasonGatewayRefused, "interface-id"},
		"a router's port":         {gateway("breth0", "stor-n", mac), ReasonGatewayRefused, "interface-id"},
		"another gateway's port":  {gateway("breth0", "breth0_m", mac), ReasonGatewayRefused, "interface-id"},
		"another bridge's port":   {gateway("breth0", "breth1_n", mac), ReasonGatewayRefused, "interface-id"},
		"no bridge's port":        {gateway("br-int", "_n", mac), ReasonGatewayRefused, "interface-id"},
		"no interface":            {gateway("br/int", "br/int_n", mac), ReasonGatewayRefused, "interface-id"},
		"no interface's length": {gateway("a234567890123456", "a234567890123456_n", mac),
			ReasonGatewayRefused, "interface-id"},
		"everybody's MAC": {gateway("breth0", "breth0_n", "ff:ff:ff:ff:ff:ff"),
			ReasonGatewayRefused, "mac-address: ff:ff"},
		"a multicast MAC": {gateway("breth0", "breth0_n", "01:00:5e:00:00:01"),
			ReasonGatewayRefused, "mac-address: 01:00"},
		"no MAC": {gateway("breth0", "breth0_n", "00:00:00:00:00:00"),
			ReasonGatewayRefused, "mac-address: 00:00"},
		"an InfiniBand MAC": {gateway("breth0", "breth0_n", "02:00:5e:10:00:00:00:01"),
			ReasonGatewayRefused, "mac-address"},
	} {
		t.Run(what, func(t *testing.T) {
			n := &Node{Name: "n", UID: "u"}
			problems := n.ReadAnnotations(c.annotations)
			if c.reason == "" {
				if len(problems) != 0 || n.Gateway == nil && n.ChassisID == "" {
					t.Errorf("%+v, problems %v; want none", n, problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Reason != c.reason || problems[0].UID != "u" ||
				!strings.Contains(problems[0].Message, c.part) {
				t.Errorf("problems %v, want %s with %q", problems, c.reason, c.part)
			}
			if n.Gateway != nil || n.ChassisID != "" {
				t.Errorf("%+v, want neither a gateway nor a chassis", n)
			}
		})
	}
}
