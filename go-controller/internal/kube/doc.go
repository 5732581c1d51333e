// Package kubeio is the one place that talks to Kubernetes: the only informers
// and the only writes, and the only package that knows k8s.io/api types.
//
// Decoding turns an API object into a cluster value. An object that is wrong in
// one place is decoded without that place and a Problem says what was wrong
// (object, field, value, what would be right); it never stops the others.
package kubeio
