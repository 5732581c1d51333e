// Package service translates services with a cluster IP: one load balancer per
// protocol, in the load balancer group that every node carries, so that a
// service costs the same number of rows whatever the number of nodes. Its
// backends are the endpoints that the service's EndpointSlices say are ready;
// with none, a connection is rejected at once rather than left to time out.
package service
