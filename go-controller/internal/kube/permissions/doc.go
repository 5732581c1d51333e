// Package permissions lists what each daemon asks of the API server, as the rules of a Kubernetes Role. Rules about
// kinds follow from the rows of kinds. Rules about what is no kind of the cluster, such as Events and Leases, are listed
// here. It has tests only.
package permissions
