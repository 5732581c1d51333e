// Package load makes fake Nodes and Pods on them, and observes when each pod has its annotation and its Northbound
// port. It also makes services with EndpointSlices, and observes their load balancers. No kubelet runs: only the
// control plane is measured.
package load
