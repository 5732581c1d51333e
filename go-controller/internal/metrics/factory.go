package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// factory makes and registers metrics in the project's namespace.
type factory struct{ promauto.Factory }

func opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: "northbound", Name: name, Help: help}
}

func histogramOpts(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: "northbound", Name: name, Help: help, Buckets: buckets}
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	return f.NewGauge(prometheus.GaugeOpts(opts(name, help)))
}

func (f factory) counter(name, help string) prometheus.Counter {
	return f.NewCounter(prometheus.CounterOpts(opts(name, help)))
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts(opts(name, help)), labels)
}
