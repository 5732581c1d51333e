// Package hostback checks that all clients reach services with backends on the host network, from the backend's own
// node, too, with and without gateways. It also checks the client addresses that the backends see.
package hostback
