package metrics

import "github.com/prometheus/client_golang/prometheus"

// Node is what `ovnkube node` counts.
type Node struct {
	Ready      prometheus.Gauge
	Pass       prometheus.Histogram
	Changes    *prometheus.CounterVec   // kind: external_ids, bridge, port, link, addr, route, neigh, sysctl, nftables, pod_port, annotation, cni
	Requests   *prometheus.HistogramVec // command: ADD, DEL, ...; code: of the CNI error, 0 for success
	GatewayOut prometheus.Gauge
	Phases     *prometheus.HistogramVec // phase: of ADD, see package cni/server
	Unheard    prometheus.Gauge
}

// NewNode makes the metrics and registers them with r.
func NewNode(r prometheus.Registerer) *Node {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "northbound", Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &Node{
		Ready: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "northbound", Name: "node_ready",
			Help: "1 when the node is as it should be and pods can be served."}),
		Pass: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "northbound", Name: "node_pass_seconds",
			Help: "Time to compare the node with what it should be, and repair it.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8)}),
		Changes: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "northbound", Name: "node_changes_total",
			Help: "Changes made to the node, by what was changed."}, []string{"kind"}),
		Requests: histogram("cni_request_seconds", "Time to serve CNI requests, by command and error code (0: success).",
			prometheus.ExponentialBuckets(0.005, 2, 14), "command", "code"),
		Phases: histogram("cni_add_phase_seconds", "Time of each step of CNI ADD.", prometheus.ExponentialBuckets(0.001, 2, 16), "phase"),
		Unheard: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "northbound", Name: "node_health_check_ports_unheard",
			Help: "healthCheckNodePorts of services that can't be listened on."}),
	}
	m.GatewayOut = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "northbound", Name: "node_gateway_out_of_service",
		Help: "1 when the node is a gateway that does not work, so that other nodes' pods don't leave through it."})
	r.MustRegister(m.Ready, m.GatewayOut, m.Pass, m.Changes, m.Requests, m.Phases, m.Unheard)
	return m
}
