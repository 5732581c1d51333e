// Package chaos breaks the parts of a cluster's control plane while pods, Services and Nodes come and go, and compares
// the Northbound database with the API server after each fault. The API server, etcd, the Northbound database and the
// master are real, and so is what forwards packets between pods of two nodes (package plane). The seed that it prints
// repeats the same choices; the moments depend on the machine.
package chaos
