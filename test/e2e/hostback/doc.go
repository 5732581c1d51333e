// Package hostback proves that services whose backends are on the host network
// are reached by everybody, the backend's own node included, with and without
// gateways; and says as whom the backends see them.
package hostback
