// Package permissions lists what each daemon asks of the API server, as the rules of a Kubernetes Role. Rules about
// kinds follow from the rows of kinds; only Events and Leases are listed here. It has tests only.
package permissions
