package names

// TaintAgentNotReady keeps pods from a node until its agent has set it up, if the kubelet registers the Node with it.
const TaintAgentNotReady = "northbound.io/agent-not-ready"
