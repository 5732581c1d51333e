package doctor

import (
	"context"
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// Mappings must lead to bridges that are there, and must have all networks outside that pods on the node are in.
func TestBridgeMappings(t *testing.T) {
	localnets := []ovs.Row{
		{"logical_port": "shop.storage_localnet", "options": options("network_name", "lan")},
		{"logical_port": ".backup_localnet", "options": options("network_name", "tapes")},
		{"logical_port": "breth0_n1", "options": options("network_name", "physnet")},
	}
	ask := func(context.Context, string, *tls.Config, string, ...ovs.Select) ([][]ovs.Row, error) {
		return [][]ovs.Row{localnets}, nil
	}
	pod := []ovs.Row{{"name": "pod1", "external_ids": options(names.IfaceID, "shop.storage_shop_db_net1")}}
	both := append(slices.Clone(pod), ovs.Row{"name": "pod2", "external_ids": options(names.IfaceID,
		"web.backup_web_db_net1")}, ovs.Row{"name": "pod3", "external_ids": options(names.IfaceID, "shop_storage-1")})
	for _, c := range []struct {
		mappings     string
		pods         []ovs.Row
		status       Status
		message, fix string
	}{
		{mappings: "", status: OK, message: "none"},
		{mappings: "lan:br1,tapes:br1", pods: pod, status: OK, message: "lan:br1,tapes:br1"},
		{mappings: "lan", status: Problem, fix: "=NETWORK:BRIDGE,...",
			message: `ovn-bridge-mappings "lan" can't be read`},
		{mappings: "lan:br2", pods: pod, status: Problem, fix: "ovs-vsctl add-br br2 -- add-port br2 NIC",
			message: "network lan is mapped to bridge br2, which is not there"},
		{mappings: "", pods: pod, status: Problem, fix: "external_ids:ovn-bridge-mappings=lan:BRIDGE",
			message: "no bridge is named for network lan, which port shop.storage_shop_db_net1 needs"},
		{mappings: "wan:br1", pods: both, status: Problem, fix: "=wan:br1,lan:BRIDGE,tapes:BRIDGE", message: "for network " +
			"tapes, which port web.backup_web_db_net1 needs"},
		{mappings: "physnet:breth0", status: OK, message: "physnet:breth0"},
		{mappings: "wan:br1", pods: pod, status: Problem, message: "for network lan", fix: "=wan:br1,lan:BRIDGE"},
	} {
		h := &facts{t: Tools{Ask: ask}, ids: map[string]string{names.OVSBridgeMappings: c.mappings,
			names.OVSGatewayBridge: "breth0"},
			bridges: []ovs.Row{{"name": "br1"}}, interfaces: c.pods}
		f := checkBridgeMappings(t.Context(), h)
		if f.Status != c.status || !strings.Contains(f.Message, c.message) ||
			!strings.Contains(strings.Join(f.Fix, "\n"), c.fix) {
			t.Errorf("%q: %+v, want %s, %q and %q", c.mappings, f, c.status, c.message, c.fix)
		}
	}
	h := &facts{sbErr: errNoRemote, ids: map[string]string{names.OVSBridgeMappings: "lan:br1"},
		bridges: []ovs.Row{{"name": "br1"}}}
	if f := checkBridgeMappings(t.Context(), h); f.Status != NotChecked {
		t.Errorf("without the Southbound database: %+v, want %s", f, NotChecked)
	}
}

// options is a map as a server of OVSDB sends it (RFC 7047 section 5.1).
func options(key, value string) any { return []any{"map", []any{[]any{key, value}}} }
