// Package cgroup makes and removes the control group for the pods of a node's kubelet, in every hierarchy of this
// machine (cgroups(7)): version 1, version 2, or both.
package cgroup
