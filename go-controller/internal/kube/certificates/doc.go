// Package certificates gives OVN's databases, and the programs that connect to them, certificates within a cluster,
// with CertificateSigningRequests (certificates.k8s.io/v1).
//
// Each database has an authority of its own, so that a node's certificate does not open the Northbound database. The
// authority is a Secret. Signer answers the requests, and Keeper makes them. judge says who may have which certificate.
package certificates
