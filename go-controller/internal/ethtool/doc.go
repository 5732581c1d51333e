// Package ethtool asks and sets features of network interfaces, with the ioctls
// of linux/ethtool.h that rtnetlink has nothing for.
package ethtool
