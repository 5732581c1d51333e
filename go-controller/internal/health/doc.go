// Package health serves a daemon's /healthz (the process is alive), /readyz (it does its work, or the body says what
// is missing) and /metrics.
package health
