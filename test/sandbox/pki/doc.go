// Package pki makes the certificates and kubeconfig files of a sandbox: a certificate authority for the sandbox's
// lifetime, a serving certificate, a key for service account tokens, and a client certificate for each identity.
// Kubernetes takes its common name and organisations for user and groups (Kubernetes documentation, "X509 client
// certificates").
package pki
