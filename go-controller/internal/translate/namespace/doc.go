// Package namespace translates namespaces: each is one address set per address
// family with the addresses of its pods, for policies to refer to.
package namespace
