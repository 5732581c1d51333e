// Package netns has a program run in a network namespace of its own, where
// nothing but the loopback device exists. So the servers that it starts can
// listen on their usual ports, beside anything else on the machine, and can be
// reached by nobody else. It works on Linux, as root.
package netns
