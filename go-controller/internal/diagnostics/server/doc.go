// Package server runs the tools of package diagnostics for callers whose tokens the API server confirms. It listens on
// the loopback address: callers come through the API server and the kubelet, as with `kubectl port-forward`.
package server
