// Package podif makes, checks, announces and removes the kernel part of a pod's network: veth pairs, and the macvlan of
// a pod that asks for one. One end of a pair is in the pod's network namespace, with MAC, addresses, routes and MTU.
// The other end is on the node, ready to be a port of Open vSwitch.
//
// The node's end is named after the attachment's id (names.AttachmentID) and is in a link group of its own. Its alias
// (ip-link(8)) is that id, with a prefix until Finish. So Add, Remove and Attachments recognise what an agent left
// behind that ended at any moment. Remove removes only the link of the given attachment: a container may have several.
package podif
