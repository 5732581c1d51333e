// Package attacks tries what a node, a pod's author or a stranger must not be able to do, on a real cluster with the
// roles and admission policies of dist/kubernetes. `make attacks` prints the table.
package attacks
