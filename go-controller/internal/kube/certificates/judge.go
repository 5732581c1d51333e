package certificates

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/northbound-net/northbound/go-controller/internal/pki"
)

// ServiceAccounts that get certificates.
const (
	databaseAccount = "ovn-db"
	masterAccount   = "ovnkube-master"
	nodeAccount     = "ovnkube-node"
)

// nodeNameKey is what the API server knows of a token that is bound to a Pod: the Pod's node (Kubernetes 1.32).
const nodeNameKey = "authentication.kubernetes.io/node-name"

// maxLifetime is how long a certificate holds at most, and if the request does not say.
const maxLifetime = 90 * 24 * time.Hour

// Bounds of a request, so that none costs the signer much.
const (
	maxRequest = 8 << 10 // bytes
	minRSABits = 2048
	maxRSABits = 8192
)

// entitlement is a certificate that a ServiceAccount may have.
type entitlement struct {
	authority, account, commonName string
	server                         bool
}

// entitlements lists all. A node's certificate has the name of the node.
func entitlements() []entitlement {
	return []entitlement{
		{Northbound, databaseAccount, "ovn-nb", true},
		{Southbound, databaseAccount, "ovn-sb", true},
		{Northbound, masterAccount, masterAccount, false},
		{Southbound, nodeAccount, "", false},
	}
}

// judge returns the certificate that a request asks for. The error says why nobody may have it. namespace is that of
// the ServiceAccounts.
func judge(csr *certificatesv1.CertificateSigningRequest, namespace string) (pki.Leaf, error) {
	e, err := entitled(csr, namespace)
	if err != nil {
		return pki.Leaf{}, err
	}
	if n := len(csr.Spec.Request); n > maxRequest {
		return pki.Leaf{}, fmt.Errorf("spec.request has %d bytes: want at most %d", n, maxRequest)
	}
	block, rest := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return pki.Leaf{}, errors.New("spec.request: want one PKCS#10 request in PEM")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return pki.Leaf{}, fmt.Errorf("spec.request: %w", err)
	}
	if err := checkRequest(r, e.commonName); err != nil {
		return pki.Leaf{}, fmt.Errorf("spec.request: %w", err)
	}
	usages, err := checkUsages(csr.Spec.Usages, e.server)
	if err != nil {
		return pki.Leaf{}, fmt.Errorf("spec.usages: %w", err)
	}
	lifetime := maxLifetime
	if s := csr.Spec.ExpirationSeconds; s != nil {
		lifetime = min(time.Duration(*s)*time.Second, maxLifetime)
	}
	return pki.Leaf{CommonName: e.commonName, PublicKey: r.PublicKey, Usages: usages, Lifetime: lifetime}, nil
}

// entitled finds what the requester may have of the signer. The common name of a node is filled in.
func entitled(csr *certificatesv1.CertificateSigningRequest, namespace string) (entitlement, error) {
	user := csr.Spec.Username
	account, ok := strings.CutPrefix(user, "system:serviceaccount:"+namespace+":")
	i := slices.IndexFunc(entitlements(), func(e entitlement) bool {
		return ok && e.account == account && signerName(e.authority) == csr.Spec.SignerName
	})
	if i < 0 {
		return entitlement{}, fmt.Errorf("user %q may have no certificate of signer %s", user, csr.Spec.SignerName)
	}
	e := entitlements()[i]
	if e.account == nodeAccount {
		node := csr.Spec.Extra[nodeNameKey]
		if len(node) != 1 || node[0] == "" {
			return e, fmt.Errorf("user %q is on no node that the API server knows (%s): want a token that is bound to a "+
				"Pod, of Kubernetes 1.32 or newer", user, nodeNameKey)
		}
		e.commonName = node[0]
	}
	return e, nil
}

func checkRequest(r *x509.CertificateRequest, commonName string) error {
	if err := checkKey(r.PublicKey); err != nil {
		return err
	}
	if err := r.CheckSignature(); err != nil {
		return fmt.Errorf("checking its signature: %w", err)
	}
	if want := (pkix.Name{CommonName: commonName}).String(); r.Subject.String() != want {
		return fmt.Errorf("subject %q: want %q", r.Subject, want)
	}
	if len(r.DNSNames)+len(r.EmailAddresses)+len(r.IPAddresses)+len(r.URIs)+len(r.Extensions) > 0 {
		return errors.New("it has alternative names or other extensions: want none")
	}
	return nil
}

func checkKey(key any) error {
	switch k := key.(type) {
	case ed25519.PublicKey:
		return nil
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() || k.Curve == elliptic.P384() {
			return nil
		}
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits >= minRSABits && bits <= maxRSABits {
			return nil
		}
	}
	return fmt.Errorf("its key: want ECDSA with P-256 or P-384, Ed25519, or RSA of %d to %d bits", minRSABits, maxRSABits)
}

// checkUsages returns the extended usages. A server is a client of its peers, too.
func checkUsages(have []certificatesv1.KeyUsage, server bool) ([]x509.ExtKeyUsage, error) {
	want := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	out := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if server {
		want, out = append(want, certificatesv1.UsageServerAuth), append(out, x509.ExtKeyUsageServerAuth)
	}
	for _, u := range have {
		if !slices.Contains(want, u) && u != certificatesv1.UsageKeyEncipherment {
			return nil, fmt.Errorf("%q: want %q", u, want)
		}
	}
	for _, u := range want {
		if !slices.Contains(have, u) {
			return nil, fmt.Errorf("%q is missing: want %q", u, want)
		}
	}
	return out, nil
}
