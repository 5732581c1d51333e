package metrics

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Totals is counters that another program keeps, one for each value of a label. They begin anew when that program does,
// as Prometheus expects of counters.
type Totals struct {
	description *prometheus.Desc

	mu     sync.Mutex
	values map[string]float64
}

func newTotals(r prometheus.Registerer, name, help, label string) *Totals {
	full := prometheus.BuildFQName("northbound", "", name)
	t := &Totals{description: prometheus.NewDesc(full, help, []string{label}, nil)}
	r.MustRegister(t)
	return t
}

// Set replaces all counters.
func (t *Totals) Set(values map[string]float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.values = maps.Clone(values)
}

// Describe implements prometheus.Collector.
func (t *Totals) Describe(ch chan<- *prometheus.Desc) { ch <- t.description }

// Collect implements prometheus.Collector.
func (t *Totals) Collect(ch chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for value, total := range t.values {
		ch <- prometheus.MustNewConstMetric(t.description, prometheus.CounterValue, total, value)
	}
}
