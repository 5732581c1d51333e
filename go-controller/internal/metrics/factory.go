package metrics

import "github.com/prometheus/client_golang/prometheus"

// factory makes metrics in the project's namespace and registers them.
type factory struct{ r prometheus.Registerer }

func opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: "northbound", Name: name, Help: help}
}

func register[C prometheus.Collector](f factory, c C) C {
	f.r.MustRegister(c)
	return c
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	return register(f, prometheus.NewGauge(prometheus.GaugeOpts(opts(name, help))))
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(f, prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(name, help)), labels))
}

func (f factory) counter(name, help string) prometheus.Counter {
	return register(f, prometheus.NewCounter(prometheus.CounterOpts(opts(name, help))))
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return register(f, prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), labels))
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return register(f, prometheus.NewHistogram(
		prometheus.HistogramOpts{Namespace: "northbound", Name: name, Help: help, Buckets: buckets}))
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(f, prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Namespace: "northbound", Name: name, Help: help, Buckets: buckets}, labels))
}
