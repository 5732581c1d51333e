package annotation

// NamespaceMulticast is the key of the Namespace annotation with which the pods of a namespace may send each other
// multicast. Its value is "true" or "false".
const NamespaceMulticast = "k8s.ovn.org/multicast-enabled"

// ACLLogging is the key of the annotation that says what is logged of the connections that policies decide about: on a
// Namespace for its NetworkPolicies, on a ClusterNetworkPolicy for itself. Its value is JSON such as
// {"allow": "info", "deny": "alert"}.
const ACLLogging = "k8s.ovn.org/acl-logging"
