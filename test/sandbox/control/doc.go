// Package control is a sandbox's control machine: the Kubernetes control plane,
// OVN's databases and northd, and `ovnkube master` under an identity of its
// own, with no more rights than it needs.
package control
