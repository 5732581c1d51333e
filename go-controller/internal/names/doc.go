// Package names is the one place where names are built: of OVN rows, OVS and
// Linux interfaces, external_ids keys, and the UUIDs of rows.
//
// Names that operators see follow the conventions of early ovn-kubernetes
// (stor-N, rtos-N, k8s-N, jtor-R, rtoj-R, GR_N, ext_N, <namespace>_<pod>).
// Nothing outside this package concatenates such a name, so that looking one
// up here tells all of its uses. The package is pure and imports nothing of
// ours.
package names
