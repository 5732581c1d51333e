// Package rootfs keeps a small Debian system that the sandbox takes OVN, Open
// vSwitch, containerd and runc from, so that nothing of them is installed on
// the user's own system and every machine tests the same versions.
//
// It is made once with debootstrap, from the mirror that this machine's apt
// uses, and cached; a change of its package list makes a new one. On Ubuntu,
// whose mirrors have no Debian, it is an Ubuntu system.
package rootfs
