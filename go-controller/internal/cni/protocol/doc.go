// Package protocol defines the messages between the CNI plugin and the node agent on the agent's unix socket: one
// Request and one Response for each connection. Each is a JSON document after its length in four bytes, most
// significant first. The plugin keeps the connection open until the answer comes; if it closes it earlier, the agent
// undoes its work.
//
// The package imports only the standard library, to keep the plugin small.
package protocol
