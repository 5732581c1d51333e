// Package nicmove moves a NIC of this host into an Open vSwitch bridge, with all
// that hosts reach it by, and back: `ovnkube nics-to-bridge` and
// `bridges-to-nic`. What to do is planned by package hostplan/nicmove; this
// package reads the host, carries the steps out, and sees to it that a mistake
// does not cut the node off:
//
//   - what the NIC has is written to a file and synced before the first change;
//   - a second process, the watchdog, is told of each step and takes everything
//     back when this one dies or falls silent;
//   - the move stands only when a target outside has answered through the bridge.
//
// All state is in the kernel, in Open vSwitch and in that file. Whoever comes
// next, the watchdog, the next call, or the one at boot, compares and goes on.
package nicmove
