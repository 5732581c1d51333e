package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/northbound-net/northbound/go-controller/internal/version"
)

// Master has the metrics of `ovnkube master`.
type Master struct {
	Transactions  *prometheus.CounterVec // result: ok, rejected, failed
	Operations    prometheus.Counter
	Rows          *prometheus.CounterVec // verb: insert, update, delete
	Repairs       *prometheus.CounterVec // kind: of the owner
	Transaction   prometheus.Histogram
	Batch         prometheus.Histogram
	Dirty         prometheus.Gauge
	Failing       prometheus.Gauge
	InSync        prometheus.Gauge
	HeldBack      prometheus.Gauge
	FullPasses    prometheus.Counter
	FullPass      prometheus.Gauge
	Patches       *prometheus.CounterVec // kind, result: ok, retried, dropped, refused, overtaken
	Problems      *prometheus.CounterVec // reason
	Differences   prometheus.Counter
	KindsRefused  prometheus.Gauge
	Gateways      *prometheus.GaugeVec // family: ipv4, ipv6; state: working, out
	DomainNames   prometheus.Gauge
	DomainQueries *prometheus.CounterVec // result: answered, none, failed
	DomainAnswer  prometheus.Gauge
	Leader        prometheus.Gauge
	Epoch         prometheus.Gauge
	Lag           prometheus.Histogram
	OVNLatency    *prometheus.HistogramVec // part: northd, controllers
	OVNProbes     *prometheus.CounterVec   // result: followed, northd_late, controllers_late, failed
	PodAddresses  *prometheus.GaugeVec     // node; family: ipv4, ipv6; state: used, available
	Subnets       *prometheus.GaugeVec     // range; family; state: used, available
	Joins         *prometheus.GaugeVec     // state: used, available
	Expiry        *prometheus.GaugeVec     // see factory.expiry
}

// NewMaster makes the metrics and registers them with r.
func NewMaster(r prometheus.Registerer) *Master {
	f := factory{promauto.With(r)}
	f.buildInfo(version.Get())
	return &Master{
		Transactions: f.counters("nb_transactions_total", "Northbound transactions, by result.", "result"),
		Operations:   f.counter("nb_operations_total", "OVSDB operations that write rows, in Northbound transactions."),
		Rows:         f.counters("nb_rows_written_total", "Northbound rows inserted, updated and deleted.", "verb"),
		Repairs: f.counters("nb_repairs_total",
			"Repairs of rows that somebody else had changed, by kind of owner.", "kind"),
		Transaction: f.NewHistogram(histogramOpts("nb_transaction_seconds",
			"Time from sending a Northbound transaction to its result.", prometheus.ExponentialBuckets(0.001, 2, 14))),
		Batch: f.NewHistogram(histogramOpts("nb_batch_owners",
			"Owners in one Northbound transaction.", prometheus.ExponentialBuckets(1, 2, 12))),
		Dirty:   f.gauge("owners_dirty", "Owners whose rows wait to be compared."),
		Failing: f.gauge("owners_failing", "Owners whose last attempt failed and that wait for the next one."),
		InSync: f.gauge("in_sync", "1 if, since the last connection, every owner was compared with the Northbound "+
			"database and all differences were written."),
		HeldBack:   f.gauge("rows_held_back", "Rows that a full pass would remove and that wait for ovnkube approve."),
		FullPasses: f.counter("full_passes_total", "Times that every owner was compared."),
		FullPass:   f.gauge("full_pass_seconds", "How long planning the last full pass took."),
		Patches: f.counters("k8s_patches_total",
			"Annotation patches sent to the API server, by kind and result.", "kind", "result"),
		Problems: f.counters("problems_total", "Problems found in users' objects, by reason.", "reason"),
		Differences: f.counter("verify_differences_total",
			"Owners for which --verify found rows that differ from a full translation. Any is a bug."),
		KindsRefused: f.gauge("k8s_kinds_refused",
			"Kinds that the API server refuses to list or watch: the master lacks a right."),
		Gateways: f.gauges("gateways",
			"Gateways with an egress path for a family, by state: working or out of service.", "family", "state"),
		DomainNames: f.gauge("domain_names", "Names in DNS that rules of policies have. Only the leader resolves them."),
		DomainQueries: f.counters("domain_name_queries_total", "Questions to DNS for the addresses of names in policies, by "+
			"result: answered, none (the name has no addresses) or failed.", "result"),
		DomainAnswer: f.gauge("domain_name_oldest_answer_timestamp_seconds", "When DNS last answered for the name in "+
			"policies that has waited longest, in seconds since 1970; 0 while there is no name."),
		Leader: f.gauge("leader", "1 on the master that leads. One of all should."),
		Epoch:  f.gauge("leader_epoch", "The leader epoch that this master has raised in the database; 0 before."),
		Lag: f.NewHistogram(histogramOpts("event_to_commit_seconds", "Time from receiving the oldest event of the API "+
			"server that a Northbound transaction carries to the database's acknowledgement.",
			prometheus.ExponentialBuckets(0.002, 2, 16))),
		OVNLatency: f.NewHistogramVec(histogramOpts("ovn_latency_seconds", "Time from a change of the Northbound database "+
			"until a part of OVN has carried it out: northd has written the Southbound database, or the ovn-controllers of all "+
			"nodes have installed the flows. Only with --ovn-latency-interval.", prometheus.ExponentialBuckets(0.002, 2, 16)),
			[]string{"part"}),
		OVNProbes: f.counters("ovn_probes_total", "Measurements of OVN's latency, by result: followed, northd_late or "+
			"controllers_late (not within a minute), or failed (the database did not answer, or refused). Only with "+
			"--ovn-latency-interval.", "result"),
		PodAddresses: f.gauges("node_pod_addresses", "Addresses for pods in each node's subnets, by state: used or "+
			"available. Only the leader knows.", "node", "family", "state"),
		Subnets: f.gauges("cluster_subnets", "Node subnets in each range of --cluster-subnets, by state: used or available. "+
			"Only the leader knows.", "range", "family", "state"),
		Joins: f.gauges("join_addresses", "Gateways that the join subnets have addresses for, by state of the address: used "+
			"or available. Only the leader knows.", "state"),
		Expiry: f.expiry(),
	}
}
