// Package nicmove moves a NIC of this host, with its addresses and routes, into an Open vSwitch bridge and back: it is
// `ovnkube nics-to-bridge` and `bridges-to-nic`. Package hostplan/nicmove plans the steps; this package reads the host,
// executes the steps, and makes sure that a mistake does not cut the node off:
//
//   - before the first change, it writes the NIC's configuration to an undo file and syncs it;
//   - a second process, the watchdog, hears of each step, and undoes the move if this process dies or hangs;
//   - the move stands only after a target outside has answered through the bridge.
//
// All state is in the kernel, in Open vSwitch and in the undo file. The watchdog, the next call and the call at boot
// compare it with the wanted state and continue from there.
package nicmove
