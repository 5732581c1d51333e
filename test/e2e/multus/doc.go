// Package multus checks pods' interfaces with Multus in front of the CNI plugin: one of another plugin, and one of OVN.
package multus
