package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Names, types and help texts keep Prometheus' conventions: base units, `_total` on counters alone, and the like.
func TestConventions(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, n, d := NewMaster(prometheus.WrapRegistererWith(prometheus.Labels{"program": "master"}, registry)),
		NewNode(prometheus.WrapRegistererWith(prometheus.Labels{"program": "node"}, registry)),
		NewDatabase(prometheus.WrapRegistererWith(prometheus.Labels{"program": "database"}, registry))
	n.Lookups.Set(map[string]float64{"hit": 1})
	n.Drops.Set(map[string]float64{"meter": 1})
	for _, v := range []*prometheus.GaugeVec{
		m.Gateways, m.PodAddresses, m.Subnets, m.Joins, m.Expiry, n.Expiry, n.ControllerUp, n.ControllerConnected,
		n.DatapathFlows, d.Up, d.Leader, d.Term, d.Servers, d.Silent, d.Bytes, d.Expiry,
	} {
		withLabels(t, func(values ...string) error { _, err := v.GetMetricWithLabelValues(values...); return err })
	}
	for _, v := range []*prometheus.CounterVec{m.Transactions, m.Rows, m.Repairs, m.Patches, m.Problems, m.DomainQueries,
		n.Changes, n.ACLDrops, d.Removed} {
		withLabels(t, func(values ...string) error { _, err := v.GetMetricWithLabelValues(values...); return err })
	}
	for _, v := range []*prometheus.HistogramVec{n.Requests, n.Phases} {
		withLabels(t, func(values ...string) error { _, err := v.GetMetricWithLabelValues(values...); return err })
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// withLabels gives a metric a value, however many labels it has.
func withLabels(t *testing.T, get func(values ...string) error) {
	t.Helper()
	for n := range 5 {
		if get(make([]string, n)...) == nil {
			return
		}
	}
	t.Fatal("a metric has more than four labels")
}
