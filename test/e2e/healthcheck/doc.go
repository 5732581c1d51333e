// Package healthcheck proves that OVN takes an endpoint whose server has died
// out of a service that asks for it, while its pod stays ready, and takes it in
// again.
package healthcheck
