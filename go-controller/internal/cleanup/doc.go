// Package cleanup takes back what the node agent, ovn-controller and the chart have set up on a machine: `ovnkube cleanup
// node`. What it removes has Northbound's mark or name: routes with hostplan.RouteProtocol, nftables' own tables, br-int,
// keys of the Open_vSwitch row. It restores the sysctls that the agent noted, and nothing else.
//
// What the cluster's objects have is package kube/cleanup's. `ovnkube minion-init` and its like have an --undo of their
// own, with a record in a file.
package cleanup
