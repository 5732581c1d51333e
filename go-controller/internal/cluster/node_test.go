package cluster

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
)

func whole() *Node {
	return &Node{Name: "n", ByHand: true, ChassisID: "0123",
		Annotated:     `{"default":["10.0.0.0/24","fd01::/64"]}`,
		JoinAnnotated: `{"default":{"ipv4":"100.64.1.2/24","ipv6":"fd98::2/64"}}`,
		Gateway: &annotation.L3Gateway{Bridge: "breth0", Network: "physnet", Port: "breth0_n",
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
