// Package pod translates pods: each is one logical switch port on its node's
// switch, with the addresses granted to it, port security so that it can't use
// others, and the only chassis that may claim it.
package pod
