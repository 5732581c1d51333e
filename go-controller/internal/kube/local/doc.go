// Package local is what a node agent knows of the cluster: its own Node and pods, the services, and of endpoints and
// other Nodes what this node needs. It keeps decoded values, and of each object only what an agent reads.
package local
