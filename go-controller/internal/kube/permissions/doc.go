// Package permissions lists what each daemon asks of the API server, as the rules of a Kubernetes Role. Rules about
// kinds follow from the rows of kinds. Rules about what is no kind of the cluster are listed here, such as those about
// Events and Leases. It has tests only.
package permissions
