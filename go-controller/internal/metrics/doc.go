// Package metrics names the Prometheus metrics of the daemons, in one place, so
// that a dashboard's author has one file to read. The values are set by the
// packages that know them.
package metrics
