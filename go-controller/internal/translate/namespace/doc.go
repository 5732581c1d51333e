// Package namespace translates namespaces. Each becomes one address set per address family with the addresses of its
// pods, which policies refer to.
package namespace
