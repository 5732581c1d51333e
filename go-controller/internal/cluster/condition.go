package cluster

// Condition is a condition in the status of an object, in the sense of the Kubernetes API conventions.
type Condition struct {
	Type            string
	True            bool // status "True", else "False"
	Reason, Message string
	Generation      int64 // metadata.generation of the object that was judged
}

// TypeAccepted is the condition that tells whether an object means for the network what its author wrote.
const TypeAccepted = "Accepted"

// TypeIPsAllocated is the condition of an IPAMClaim that tells whether it has addresses.
const TypeIPsAllocated = "IPsAllocated"

// northboundIsReady is the reason of NodeAvailable. No Event has it.
const northboundIsReady = "NorthboundIsReady"

// NodeAvailable is the condition of a Node whose network is set up. Cloud providers' controllers may say the opposite
// until the cloud has routes to the node's pods, which this network does not need. The scheduler then avoids the node.
func NodeAvailable() Condition {
	return Condition{Type: "NetworkUnavailable", Reason: northboundIsReady,
		Message: "the node agent of Northbound has set up the node"}
}

// Judged is an object whose status is to have conditions, in the order of Observed.Own. Their Generation is that of
// Observed.
type Judged struct {
	Ref        Ref
	UID        string
	Conditions []Condition
}

// Observed is how an object's status relates to what the object says. It is no part of what the object says, so that
// the echo of a write of ours changes nothing.
type Observed struct {
	Generation int64       // metadata.generation
	HasStatus  bool        // there is a status, with or without conditions
	Conditions string      // status.conditions as JSON, letter by letter; "" when there are none
	Own        []Condition // those among them that a master writes, in the order in which it judges
}

// Observable is an Object whose status a master writes.
type Observable interface {
	Object
	// Observe is what was observed of the object.
	Observe() Observed
}
