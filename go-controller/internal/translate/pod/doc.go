// Package pod translates pods. Each becomes one logical switch port on its node's switch, with the addresses that were
// granted, port security so that the pod can't use others, and the only chassis that may claim the port.
package pod
