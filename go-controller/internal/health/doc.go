// Package health serves a daemon's /healthz (503 when it must be started again), /readyz (503 while it does not do its
// work, and the body says why) and /metrics.
package health
