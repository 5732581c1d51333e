// Package selector reads Kubernetes label selectors that operators give as flags.
package selector
