// Package cleanup takes back what masters, agents and the signer have written to the API server: `ovnkube cleanup
// cluster`. It removes annotations, Leases, ConfigMaps, Secrets and certificate requests, but no object that a user or
// the chart has made, and no annotation that users write.
package cleanup
