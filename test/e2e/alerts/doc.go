// Package alerts breaks a cluster of the Helm chart, and has a real Prometheus fire the alerts that name the faults.
package alerts
