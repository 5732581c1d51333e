// Package cniconf reads which network configuration of a directory the container runtime takes, and whether it is that
// of Multus.
package cniconf
