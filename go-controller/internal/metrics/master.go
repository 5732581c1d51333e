package metrics

import "github.com/prometheus/client_golang/prometheus"

// Master is what `ovnkube master` counts.
type Master struct {
	Transactions *prometheus.CounterVec // result: ok, rejected, failed
	Operations   prometheus.Counter
	Rows         *prometheus.CounterVec // verb: insert, update, delete
	Repairs      *prometheus.CounterVec // kind: of the owner
	Transaction  prometheus.Histogram
	Batch        prometheus.Histogram
	Dirty        prometheus.Gauge
	Failing      prometheus.Gauge
	InSync       prometheus.Gauge
	FullPasses   prometheus.Counter
	FullPass     prometheus.Gauge
	Patches      *prometheus.CounterVec // kind, result: ok, retried, dropped, refused
	Problems     *prometheus.CounterVec // reason
	Differences  prometheus.Counter
	Gateways     *prometheus.GaugeVec // family: ipv4, ipv6; state: working, out
}

// NewMaster makes the metrics and registers them with r.
func NewMaster(r prometheus.Registerer) *Master {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "northbound", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "northbound", Name: name, Help: help})
	}
	m := &Master{
		Transactions: counter("nb_transactions_total", "Northbound transactions, by result.", "result"),
		Operations:   prometheus.NewCounter(prometheus.CounterOpts{Namespace: "northbound", Name: "nb_operations_total", Help: "OVSDB operations in committed Northbound transactions."}),
		Rows:         counter("nb_rows_written_total", "Northbound rows inserted, updated and deleted.", "verb"),
		Repairs:      counter("nb_repairs_total", "Times that rows were put back after somebody else had changed them, by kind of owner.", "kind"),
		Transaction: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "northbound", Name: "nb_transaction_seconds",
			Help: "Time from sending a Northbound transaction to its result.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14)}),
		Batch: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "northbound", Name: "nb_batch_owners",
			Help: "Owners in one Northbound transaction.", Buckets: prometheus.ExponentialBuckets(1, 2, 12)}),
		Dirty:       gauge("owners_dirty", "Owners whose rows are still to be compared."),
		Failing:     gauge("owners_failing", "Owners whose last attempt failed and that wait to be tried again."),
		InSync:      gauge("in_sync", "1 when, since the last connection, every owner was compared with the Northbound database and what differed was written."),
		FullPasses:  prometheus.NewCounter(prometheus.CounterOpts{Namespace: "northbound", Name: "full_passes_total", Help: "Times that every owner was compared."}),
		FullPass:    gauge("full_pass_seconds", "How long planning the last full pass took."),
		Patches:     counter("k8s_patches_total", "Annotation patches sent to the API server, by kind and result.", "kind", "result"),
		Problems:    counter("problems_total", "Problems found in users' objects, by reason.", "reason"),
		Differences: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "northbound", Name: "verify_differences_total", Help: "Owners for which --verify found other rows than following changes had led to. Any is a bug."}),
	}
	m.Gateways = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "northbound", Name: "gateways",
		Help: "Gateways that can lead packets of a family out of the cluster: those that work, and those out of service."}, []string{"family", "state"})
	r.MustRegister(m.Transactions, m.Operations, m.Rows, m.Repairs, m.Transaction, m.Batch, m.Dirty, m.Failing,
		m.InSync, m.FullPasses, m.FullPass, m.Patches, m.Problems, m.Differences, m.Gateways)
	return m
}
