// Package control is a sandbox's control machine: the Kubernetes control plane, OVN's databases and northd, and
// `ovnkube master` with an identity that has only the rights that it needs.
package control
