// Package pki makes the certificates and kubeconfig files of one sandbox: an
// authority that lives as long as the sandbox, a serving certificate, a key for
// service account tokens, and a client certificate for each identity, whose
// common name and organisations are user and groups to Kubernetes (Kubernetes
// documentation, "X509 client certificates").
package pki
