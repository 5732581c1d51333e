// Package rootfs keeps a small Debian system that the sandbox takes OVN, Open
// vSwitch, containerd and runc from, so that nothing of them is installed on
// the user's own system and every machine tests the same versions.
//
// It is made once with debootstrap, from the mirror that this machine's apt
// uses, and cached; a change of its package list makes a new one. On Ubuntu,
// whose mirrors have no Debian, it is an Ubuntu system.
//
// Beside the release that the tests depend on there may be one with the newest
// OVN, of whichever suite has it, to see what changes: nothing that must be
// repeatable uses it.
package rootfs
