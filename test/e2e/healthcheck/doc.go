// Package healthcheck checks services with health checks. When the server of an endpoint dies, OVN takes the endpoint
// out of service, although its pod stays ready, and brings it back later.
package healthcheck
