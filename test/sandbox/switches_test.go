package sandbox

import (
	"strings"
	"testing"
)

// TestAmbiguous has two switches, as ovn-sbctl prints them.
func TestAmbiguous(t *testing.T) {
	const (
		n1       = "Datapath: \"n1\" (4d5c5f6c-1f2c-4f57-8ad6-6f1c5f0ad02d)  Pipeline: ingress\n"
		n2       = "Datapath: \"n2\" (0fd8ee29-6a52-4f71-a9cb-5cf2ef92de56)  Pipeline: ingress\n"
		fallback = "  table=13(ls_in_lb           ), priority=0    , match=(1), action=(next;)\n"
		vip      = "  table=13(ls_in_lb           ), priority=120  , match=(ct.new && ip4.dst == 10.96.0.1 && tcp.dst == 80), action=(ct_lb_mark(backends="
		a        = vip + "10.0.1.1:80);)\n"
		b        = vip + "10.0.2.1:80);)\n"
		acl      = "  table=8 (ls_in_acl_eval     ), priority=1    , match=(1), action=(next;)\n"
	)
	if err := ambiguous(n1 + fallback + a + acl + acl + n2 + fallback + b); err != nil {
		t.Errorf("each switch has its own: %v", err)
	}
	err := ambiguous(n1 + fallback + a + n2 + fallback + a + b)
	if err == nil || !strings.Contains(err.Error(), `two flows Datapath: "n2"`) || strings.Contains(err.Error(), `"n1"`) || !strings.Contains(err.Error(), "10.0.2.1:80") {
		t.Errorf("n2 has two: %v", err)
	}
}
