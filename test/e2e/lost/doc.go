// Package lost has the end-to-end test of a control plane that has lost both OVN databases, with no backup of either.
package lost
