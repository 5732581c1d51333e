package annotation

// NamespaceMulticast is the key of the Namespace annotation with which the pods of a namespace may send each other
// multicast. Its value is "true" or "false".
const NamespaceMulticast = "k8s.ovn.org/multicast-enabled"

// Keys of Namespace annotations about tenants, which a cluster has with --multitenant.
const (
	// NamespaceTenant has the name of a namespace's tenant, a DNS label, or EveryTenant.
	NamespaceTenant = "k8s.ovn.org/tenant"
	// NamespaceChangeNetwork is what OpenShift SDN has for it: "global", "isolate" or "join:NAMESPACE".
	NamespaceChangeNetwork = "pod.network.openshift.io/multitenant.change-network"
)

// EveryTenant is the value of NamespaceTenant for a global namespace: it reaches all others, and all others reach it.
const EveryTenant = "*"

// ACLLogging is the key of the annotation that says what is logged of the connections that policies decide about: on a
// Namespace for its NetworkPolicies, on a ClusterNetworkPolicy for itself. Its value is JSON such as
// {"allow": "info", "deny": "alert"}.
const ACLLogging = "k8s.ovn.org/acl-logging"
