// Package annotation is the wire form of the annotations on Nodes, Pods and Services:
// their keys, and parsing and marshalling of their values. The formats are the
// ones the OVN ecosystem already reads. Parsing checks syntax and shape only
// (is this an address? is it there?); whether a value is right for this
// cluster is for package allocate to decide. Parse(Marshal(x)) == x, which the
// fuzz tests hold. The package is pure and imports only ipnet of ours.
package annotation
