// Package ovs brings the local Open_vSwitch database to what package hostplan wants.
// Nothing else writes to it. It keeps one connection with one monitor (RFC 7047
// section 4.1.5, ovsdb-server(7) "monitor_cond_since"). A lost one is replaced, and
// never resumed.
//
// Converge compares the node's own rows with a plan and sends the difference as one
// transaction. The pod methods (AddPodPort, RemovePodPorts, WaitInstalled ...) serve
// the CNI server. Changed announces changes of anything that a plan may contain. A row
// that no plan names, and that has no sandbox key, is never touched.
//
// Flows does the same for the OpenFlow flows of bridges that have one cookie, with
// ovs-ofctl(8): it reads, compares, and sends the difference as one bundle.
package ovs
