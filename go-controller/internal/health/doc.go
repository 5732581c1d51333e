// Package health serves what probes and Prometheus ask a daemon for: /healthz
// (the process is alive), /readyz (it does its work; the body says what is
// missing when it does not) and /metrics.
package health
