// Package ovs brings the local Open_vSwitch database to what package hostplan
// wants, and is the only one that writes to it. It keeps one connection with
// one monitor (RFC 7047 section 4.1.5, ovsdb-server(7) "monitor_cond_since"),
// which reconnects by itself.
//
// Three things can be done: Converge compares the node's own rows with a plan
// and sends the difference as one transaction; the pod methods (AddPodPort,
// RemovePodPorts, WaitInstalled...) serve the CNI server; Changed tells when
// something that a plan may contain has altered.
//
// Flows does the same for the OpenFlow flows of bridges, with ovs-ofctl(8): of
// those that carry one cookie it reads, compares and sends what differs as one
// bundle, and tells when any changes.
//
// A row that is not named in a plan, and has no sandbox key, is never touched.
package ovs
