package annotation

// NamespaceMulticast is the key of the Namespace annotation with which the pods of a namespace may send each other
// multicast. Its value is "true" or "false".
const NamespaceMulticast = "k8s.ovn.org/multicast-enabled"
