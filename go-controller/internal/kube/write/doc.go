// Package write is the only place that changes objects that others own: it patches annotations, conditions, finalizers
// and the status of IPAMClaims, removes taints, and makes Events. Only package
// cleanup takes such changes back.
package write
