// Package client prepares connections to a Kubernetes API server: which server, as whom, over which protocol. It may
// hold no knowledge of single kinds, but for which kinds of policies are obsolete.
package client
