// Package dashboard reads a dashboard of Grafana, asks a Prometheus server for what its panels show, and draws that
// without Grafana.
package dashboard
