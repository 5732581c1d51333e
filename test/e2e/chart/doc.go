// Package chart has the end-to-end test of the Helm chart: helm installs it on nodes that have never seen the product,
// changes it, and removes it. OVN's databases, the master, ovn-controller and the agent are pods of the container
// image.
package chart
