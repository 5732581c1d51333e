// Package ethtool reads and sets features of network interfaces with ioctls of linux/ethtool.h, where rtnetlink has no
// equivalent.
package ethtool
