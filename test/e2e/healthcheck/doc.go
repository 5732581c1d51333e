// Package healthcheck checks that OVN takes an endpoint out of a service with health checks when its server dies,
// although its pod stays ready, and brings it back into service later.
package healthcheck
