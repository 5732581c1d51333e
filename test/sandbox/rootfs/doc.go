// Package rootfs keeps a small Debian system with OVN, Open vSwitch, containerd and runc for the sandbox. So nothing is
// installed on the user's own system, and every machine tests the same versions.
//
// It is made once with debootstrap from the mirror that this machine's apt uses, and cached. If the package list
// changes, a new one is made. On Ubuntu, whose mirrors do not have Debian, it is an Ubuntu system.
//
// Besides the release that the tests depend on, there may be one with the newest OVN of any suite, to see what changes.
// Nothing that must be repeatable uses it.
package rootfs
