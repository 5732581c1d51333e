// Package antispoof plans that the kernel drops packets from outside whose source is within the cluster. It is a room
// of package hostplan and pure like it.
package antispoof
