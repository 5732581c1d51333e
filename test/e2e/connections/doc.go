// Package connections checks what a pod may cost its node in tracked connections, when the master has
// --max-pod-connections.
package connections
