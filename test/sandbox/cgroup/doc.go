// Package cgroup makes and removes the control group that a node's kubelet
// keeps its pods in, in every hierarchy that this machine has (cgroups(7)):
// version 1, version 2, or both.
package cgroup
