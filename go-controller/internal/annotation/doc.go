// Package annotation has the keys of the annotations on Nodes, Pods and Services, and parses and marshals their
// values. The formats are those that the OVN ecosystem already reads. Parsing checks only syntax and completeness;
// package allocate decides whether a value is right for this cluster. The fuzz tests check that Parse(Marshal(x)) == x.
// The package is pure and imports only ipnet and names of this project.
package annotation
