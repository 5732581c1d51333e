// Package netns runs a program in a network namespace of its own, with only the loopback device, and in a mount
// namespace of its own. So its servers can use their usual ports, whatever else runs on the machine, and nothing else
// can reach them. What it mounts ends with it. It works on Linux, as root.
package netns
