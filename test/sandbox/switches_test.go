package sandbox

import (
	"strings"
	"testing"
)

// TestAmbiguous checks two switches in the format of ovn-sbctl.
func TestAmbiguous(t *testing.T) {
	const (
		n1       = "Datapath: \"n1\" (4d5c5f6c-1f2c-4f57-8ad6-6f1c5f0ad02d)  Pipeline: ingress\n"
		n2       = "Datapath: \"n2\" (0fd8ee29-6a52-4f71-a9cb-5cf2ef92de56)  Pipeline: ingress\n"
		fallback = "  table=13(ls_in_lb           ), priority=0    , match=(1), action=(next;)\n"
		vip      = "  table=13(ls_in_lb           ), priority=120  , match=(ct.new && ip4.dst == 10.96.0.1 && tcp.dst == " +
			"80), action=(ct_lb_mark(backends="
		a   = vip + "10.0.1.1:80);)\n"
		b   = vip + "10.0.2.1:80);)\n"
		acl = "  table=8 (ls_in_acl_eval     ), priority=1    , match=(1), action=(next;)\n"
	)
	// Two ports of an address with the same target, with session affinity.
	const stick = "  table=13(ls_in_lb           ), priority=150  , match=(reg9[6] == 1 && ct.new && ip4.dst == " +
		"10.96.0.1 && reg8[0..15] == 8080), action=(reg2[0..15] = "
	const kept = stick + "80; ct_lb_mark(backends=10.0.1.1:8080);)\n" + stick +
		"443; ct_lb_mark(backends=10.0.1.1:8080);)\n"
	if have := ambiguous(n1 + fallback + a + acl + acl + kept + n2 + fallback + b); len(have) > 0 {
		t.Errorf("each switch has its own: %q", have)
	}
	have := ambiguous(n1 + fallback + a + n2 + fallback + a + b)
	if len(have) != 1 {
		t.Fatalf("n2 has two: %q", have)
	}
	for flow, to := range have {
		if !strings.Contains(flow, `Datapath: "n2"`) || !strings.Contains(to, "10.0.1.1:80") ||
			!strings.Contains(to, "10.0.2.1:80") {
			t.Errorf("n2 has two: %s: %s", flow, to)
		}
	}
}
