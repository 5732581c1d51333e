// Package protocol is what the CNI plugin and the node agent say to each other
// on the agent's unix socket: one Request and one Response per connection, each
// a JSON document after its length in four bytes, most significant first. The
// plugin keeps the connection open until the answer comes; when it goes away
// earlier the agent undoes what it has done.
//
// The package imports nothing but the standard library, as it is linked into
// the plugin.
package protocol
