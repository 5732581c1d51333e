// Package lease lets the master notice within seconds that a gateway's machine has died. The agent of a gateway node
// renews a Lease (Keeper), and the master looks at these Leases and the kubelets' (Monitor).
package lease
