package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/northbound-net/northbound/go-controller/internal/version"
)

// Database has the metrics of `ovnkube database maintain`. The label database is nb or sb.
type Database struct {
	Up       *prometheus.GaugeVec
	Leader   *prometheus.GaugeVec
	Term     *prometheus.GaugeVec
	Servers  *prometheus.GaugeVec
	Silent   *prometheus.GaugeVec
	Bytes    *prometheus.GaugeVec
	Removed  *prometheus.CounterVec
	Northd   prometheus.Gauge
	NorthdUp prometheus.Gauge
	Expiry   *prometheus.GaugeVec // see factory.expiry
}

// NewDatabase makes the metrics and registers them with r.
func NewDatabase(r prometheus.Registerer) *Database {
	f := factory{promauto.With(r)}
	f.buildInfo(version.Get())
	of := func(name, help string) *prometheus.GaugeVec { return f.gauges(name, help, "database") }
	return &Database{
		Up:     of("database_up", "1 if the server of this node takes part in its Raft cluster, and knows a leader."),
		Leader: of("database_leader", "1 if the server of this node leads the database. One of all servers should."),
		Term:   of("database_raft_term", "Raft term: the number of elections so far, about."),
		Servers: of("database_servers",
			"Servers that the Raft cluster has, whether they answer or not. It can be written while a majority answers."),
		Silent: of("database_servers_silent", "Servers that the leader has not heard from for 8 s. Only the leader knows."),
		Bytes:  of("database_file_bytes", "Size of the database's file on this node."),
		Removed: f.counters("database_servers_removed_total",
			"Servers that this node has removed from the Raft cluster, since they were gone for good.", "database"),
		Northd:   f.gauge("northd_active", "1 if the ovn-northd of this node is the active one. One of all should be."),
		NorthdUp: f.gauge("northd_up", "1 if the ovn-northd of this node answers."),
		Expiry:   f.expiry(),
	}
}
