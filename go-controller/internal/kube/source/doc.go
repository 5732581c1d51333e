// Package source is what the master knows of the cluster: each change of an object that it watches as an event with
// the decoded value. It keeps no objects: they are in the state of whoever takes the events.
package source
