package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/northbound-net/northbound/go-controller/internal/version"
)

// Node has the metrics of `ovnkube node`.
type Node struct {
	Ready prometheus.Gauge
	Pass  prometheus.Histogram
	// Changes has the label kind: external_ids, bridge, port, link, addr, route, neigh, sysctl, nftables, pod_port,
	// annotation or cni.
	Changes           *prometheus.CounterVec
	Requests          *prometheus.HistogramVec // command: ADD, DEL, ...; code: of the CNI error, 0 for success
	GatewayOut        prometheus.Gauge
	Phases            *prometheus.HistogramVec // phase: of ADD, see package cni/server
	HealthPortsFailed prometheus.Gauge
	KindsRefused      prometheus.Gauge
	Expiry            *prometheus.GaugeVec // see factory.expiry

	// What the daemons beside the agent say. There is no value while the agent cannot find the daemon.
	ControllerUp        *prometheus.GaugeVec   // no label
	ControllerConnected *prometheus.GaugeVec   // no label
	DatapathFlows       *prometheus.GaugeVec   // no label
	Lookups             *Totals                // result: hit, missed, lost
	Drops               *Totals                // reason
	ACLDrops            *prometheus.CounterVec // direction: egress, ingress
}

// NewNode makes the metrics and registers them with r.
func NewNode(r prometheus.Registerer) *Node {
	f := factory{promauto.With(r)}
	f.buildInfo(version.Get())
	return &Node{
		Ready: f.gauge("node_ready", "1 if the node is fully configured and pods can be served."),
		Pass: f.NewHistogram(histogramOpts("node_pass_seconds",
			"Time to compare the node with its wanted state and to repair it.", prometheus.ExponentialBuckets(0.0005, 4, 8))),
		Changes: f.counters("node_changes_total", "Changes made to the node, by what was changed.", "kind"),
		Requests: f.NewHistogramVec(histogramOpts("cni_request_seconds",
			"Time to serve CNI requests, by command and error code (0: success).",
			prometheus.ExponentialBuckets(0.005, 2, 14)), []string{"command", "code"}),
		Phases: f.NewHistogramVec(histogramOpts("cni_add_phase_seconds", "Time of each step of CNI ADD.",
			prometheus.ExponentialBuckets(0.001, 2, 16)), []string{"phase"}),
		KindsRefused: f.gauge("node_k8s_kinds_refused",
			"Kinds that the API server refuses to list or watch: the agent lacks a right."),
		Expiry:       f.expiry(),
		ControllerUp: f.gauges("ovn_controller_up", "1 if the node's ovn-controller answers."),
		ControllerConnected: f.gauges("ovn_controller_connected",
			"1 if the node's ovn-controller is connected to the Southbound database."),
		DatapathFlows: f.gauges("datapath_flows", "Flows in Open vSwitch's datapath, the cache of decisions."),
		Lookups: newTotals(r, "datapath_lookups_total", "Packets that Open vSwitch's datapath looked up, by result: hit, "+
			"missed (ovs-vswitchd decided), or lost (dropped before ovs-vswitchd could decide).", "result"),
		Drops: newTotals(r, "datapath_drops_total", "Packets that ovs-vswitchd dropped and should not have, by "+
			"its coverage counter. Those that a policy drops are not in it.", "reason"),
		ACLDrops: f.counters("acl_drops_total", "Packets that ACLs dropped on the node since the agent started, by "+
			"direction: egress (from pods) or ingress (to pods). Besides what policies deny, this includes multicast that "+
			"is not allowed, ClusterIPs without endpoints, and packets of no known connection. Not with OVN 23.03.",
			"direction"),
		HealthPortsFailed: f.gauge("node_health_check_node_ports_failed",
			"healthCheckNodePorts of services on which the agent cannot listen."),
		GatewayOut: f.gauge("node_gateway_out_of_service",
			"1 if the node is a gateway that does not work, so that pods of other nodes do not use it."),
	}
}
