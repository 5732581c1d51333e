package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/northbound-net/northbound/go-controller/internal/version"
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

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts(opts(name, help)), labels)
}

// expiry is when certificates end. The labels are the database, nb or sb, and the part: certificate or authority.
func (f factory) expiry() *prometheus.GaugeVec {
	return f.gauges("certificate_expiry_timestamp_seconds", "When a certificate of a connection to OVN's databases ends, "+
		"in seconds since 1970: the own one, or the authority's.", "database", "part")
}

// buildInfo says which build runs: dashboards join its labels to other metrics.
func (f factory) buildInfo(i version.Info) {
	o := opts("build_info", "1, with the version of the program, its commit and its version of Go.")
	o.ConstLabels = prometheus.Labels{"version": i.Version, "commit": i.Commit, "goversion": i.Go}
	f.NewGauge(prometheus.GaugeOpts(o)).Set(1)
}
