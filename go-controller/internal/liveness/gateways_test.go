package liveness

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
)

// What the last master reported is not reported again. When the gateway comes back or is deleted, its next outage is.
func TestReportsOfRecalledGateways(t *testing.T) {
	gateway := func(down bool) *cluster.Node {
		return &cluster.Node{Name: "g", UID: "u", LeaseExpired: down,
			Gateway: &annotation.L3Gateway{IPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}}}
	}
	steps := map[string][]*cluster.Node{
		"comes back":    {gateway(false)},
		"goes":          {nil, gateway(false)},
		"is no gateway": {{Name: "g", UID: "u"}, gateway(false)},
	}
	for name, between := range steps {
		g := NewGateways(nil, metrics.NewMaster(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
		s := index.NewState(config.DefaultCluster())
		reports := 0
		put := func(n *cluster.Node) {
			e := cluster.Event{Ref: gateway(false).Ref()}
			if n != nil {
				e.New = n
			}
			c, ok := s.Apply(e)
			if !ok {
				t.Fatalf("%s: %+v changes nothing", name, n)
			}
			reports += len(g.Changed(s, []cluster.Change{c}))
		}
		put(gateway(false))
		g.presumed["g"] = true // as Recall does
		put(gateway(true))
		if reports != 0 {
			t.Errorf("%s: what the last master reported is reported again", name)
		}
		for _, n := range between {
			put(n)
		}
		put(gateway(true))
		if reports != 1 {
			t.Errorf("%s: %d reports, want 1", name, reports)
		}
	}
}
