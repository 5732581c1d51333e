// Package diagnostics says what `kubectl northbound` may ask of a running cluster: which tool, where, with which
// arguments, on whose behalf, and in which form. Both sides import it. Its subpackage server answers; kube/remote asks.
//
// No tool changes anything. A tool runs with the rights of its container, so its arguments are checked against a list
// of what is allowed: an unknown option could write a file, or connect to an address of the caller's choice.
package diagnostics
