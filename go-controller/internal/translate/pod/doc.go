// Package pod translates pods. Each becomes one logical switch port for each attachment, on its node's switch in that
// network, with the addresses that were granted, port security so that the pod can't use others, and the only chassis
// that may claim the port.
package pod
