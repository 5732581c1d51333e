// Package metrics defines all Prometheus metrics of the daemons, so that the author of a dashboard has one place to
// read. The packages that do the work set the values.
package metrics
