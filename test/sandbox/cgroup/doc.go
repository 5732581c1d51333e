// Package cgroup makes and removes control groups (cgroups(7)): that of a node's kubelet for its pods, in every
// hierarchy of this machine, whether of version 1, version 2, or both; and those that limit memory, or hold a machine's
// systemd.
package cgroup
