// Package netlink stands for the real one.
package netlink
