package names

// Network is the name of a network. It is a DNS subdomain (RFC 1123), so that it contains neither "_" nor "/".
type Network string

// Own is the cluster's own network, which every pod is in.
const Own Network = "default"
