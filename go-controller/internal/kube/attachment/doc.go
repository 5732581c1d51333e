// Package attachment reads what the Network Plumbing Working Group has defined for pods with several interfaces
// ("Kubernetes Network Custom Resource Definition De-facto Standard"): the configuration in a
// NetworkAttachmentDefinition, and the annotation by which a pod asks for interfaces.
//
// It only reads: package kinds has the rows of the kinds.
package attachment
