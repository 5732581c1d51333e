// Package underlay is the network between the machines of a sandbox: a bridge in the control machine's network
// namespace, and a veth to each node. Its addresses exist only in these namespaces, so that two sandboxes can use the
// same ones.
package underlay
