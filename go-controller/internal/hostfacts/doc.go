// Package hostfacts gathers what a node's plan depends on: hostplan.Facts, from
// this host's kernel and Open vSwitch, and from what the caller knows of the Node.
// The agent, the commands that set machines up by hand and the doctor all gather
// here, so that they plan from the same facts. It only reads.
package hostfacts
