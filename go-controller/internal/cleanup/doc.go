// Package cleanup is `ovnkube cleanup node`. It takes back what the node agent, ovn-controller and the chart have set
// up on a machine. What it removes has Northbound's mark or name: routes with hostplan.RouteProtocol, the tables of
// nftables that are named northbound, br-int, OVN's keys of the Open_vSwitch row. It restores the sysctls that the
// agent noted.
//
// What the cluster's objects have is package kube/cleanup's. `ovnkube minion-init` and its like have an --undo of their
// own, with a record in a file.
package cleanup
