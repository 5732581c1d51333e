// Package underlay is the network between the machines of a sandbox: a bridge
// in the control machine's network namespace, and a veth to each node. It uses
// addresses that only exist in these namespaces, so that two sandboxes have the
// same ones without noticing.
package underlay
