// Package kube is the one place that talks to Kubernetes. Its packages are the only ones that know client-go and the
// types of k8s.io/api. It holds no code itself:
//
//   - client: connections to an API server
//   - kinds: one row per kind, with its strict decoder
//   - reflector: the one way to list and watch
//   - source: what the master watches, as events
//   - local: what a node agent watches
//   - write: annotation patches and Events
//   - lease: Leases of gateways, renewed and monitored
//   - leader: the election of the one master that works
//   - manifest: objects from files
//   - selector: label selectors from flags
//   - permissions: what each daemon may do, derived from the rows of kinds
//   - attachment: definitions of networks, and which of them a pod asks for, as text
//   - tenants: the tenants of namespaces, as `ovnkube tenant` changes them
//   - settings: the ConfigMap in which the master publishes its settings
//   - database: the addresses of databases that run in pods, and the record of each Raft cluster
//   - certificates: certificates of databases and their clients
//   - remote: asking daemons through the API server, for `kubectl northbound`
//   - review: who is asking, and whether they may
//   - snapshot: a cluster's objects in one manifest
//   - cleanup: what `ovnkube cleanup` takes back of the API server
package kube
