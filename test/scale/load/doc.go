// Package load makes fake Nodes and Pods that are bound to them, and sees when
// each pod has its annotation and its Northbound port. It makes services with
// EndpointSlices, and sees their load balancers. No kubelet runs: what is measured
// is the control plane alone.
package load
