// Package monitoring tests what operators get for Prometheus and Grafana: the alerts and their pages, and the
// dashboards.
package monitoring
