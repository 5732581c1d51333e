package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

const namespace = "ovn-kubernetes"

func key(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// encoded is a PKCS#10 request in PEM.
func encoded(t *testing.T, r x509.CertificateRequest, k crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &r, k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// request is what a ServiceAccount asks of a signer. node is that of its Pod, "" for none.
func request(t *testing.T, authority, account, node, commonName string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-" + authority + "-" + commonName},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signerName(authority), Username: "system:serviceaccount:" + namespace + ":" + account,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Request: encoded(t, x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName}},
				key(t, elliptic.P256())),
		},
	}
	if account == databaseAccount {
		csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.UsageServerAuth)
	}
	if node != "" {
		csr.Spec.Extra = map[string]certificatesv1.ExtraValue{nodeNameKey: {node}}
	}
	return csr
}

// TestJudgeGrants gives everybody what is theirs.
func TestJudgeGrants(t *testing.T) {
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, k := range []struct {
		authority, account, node, name string
		usages                         []x509.ExtKeyUsage
	}{
		{Northbound, databaseAccount, "n1", "ovn-nb", both},
		{Southbound, databaseAccount, "n1", "ovn-sb", both},
		{Northbound, masterAccount, "", "ovnkube-master", both[:1]},
		{Southbound, nodeAccount, "n1", "n1", both[:1]},
	} {
		csr := request(t, k.authority, k.account, k.node, k.name)
		leaf, err := judge(csr, namespace)
		if err != nil || leaf.CommonName != k.name || !slices.Equal(leaf.Usages, k.usages) || leaf.Lifetime != maxLifetime {
			t.Errorf("%s of %s: %+v, %v", k.name, k.account, leaf, err)
		}
		seconds := int32(3600)
		csr.Spec.ExpirationSeconds = &seconds
		if leaf, err := judge(csr, namespace); err != nil || leaf.Lifetime != time.Hour {
			t.Errorf("%s for an hour: %v, %v", k.name, leaf.Lifetime, err)
		}
		seconds = 400 * 24 * 3600
		if leaf, err := judge(csr, namespace); err != nil || leaf.Lifetime != maxLifetime {
			t.Errorf("%s for 400 days: %v, %v, want %v", k.name, leaf.Lifetime, err, maxLifetime)
		}
	}
}

// TestJudgeRefuses refuses everything else, and says what would be right.
func TestJudgeRefuses(t *testing.T) {
	type csr = certificatesv1.CertificateSigningRequest
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	n1 := pkix.Name{CommonName: "n1"}
	asks := func(r x509.CertificateRequest, k crypto.Signer) func(*csr) {
		return func(c *csr) { c.Spec.Request = encoded(t, r, k) }
	}
	p256 := key(t, elliptic.P256())
	for want, change := range map[string]func(*csr){
		`subject "CN=n2": want "CN=n1"`: asks(x509.CertificateRequest{Subject: pkix.Name{CommonName: "n2"}}, p256),
		`subject "CN=n1,O=system:masters": want "CN=n1"`: asks(x509.CertificateRequest{
			Subject: pkix.Name{CommonName: "n1", Organization: []string{"system:masters"}}}, p256),
		"alternative names":         asks(x509.CertificateRequest{Subject: n1, DNSNames: []string{"ovn-sb"}}, p256),
		"want ECDSA with P-256":     asks(x509.CertificateRequest{Subject: n1}, key(t, elliptic.P224())),
		"RSA of 2048 to 8192 bits":  asks(x509.CertificateRequest{Subject: n1}, small),
		"want one PKCS#10 request":  func(c *csr) { c.Spec.Request = []byte("hello") },
		"want at most 8192":         func(c *csr) { c.Spec.Request = append(c.Spec.Request, make([]byte, 8192)...) },
		"checking its signature":    func(c *csr) { c.Spec.Request = forged(t, c.Spec.Request) },
		"is on no node":             func(c *csr) { c.Spec.Extra = nil },
		"is on no node that":        func(c *csr) { c.Spec.Extra[nodeNameKey] = []string{"n1", "n2"} },
		"no certificate of signer":  func(c *csr) { c.Spec.SignerName = signerName(Northbound) },
		`user "system:node:n1" may`: func(c *csr) { c.Spec.Username = "system:node:n1" },
		":other:ovnkube-node\" may": func(c *csr) { c.Spec.Username = "system:serviceaccount:other:ovnkube-node" },
		`"server auth": want`: func(c *csr) {
			c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageServerAuth)
		},
		`"client auth" is missing`:     func(c *csr) { c.Spec.Usages = c.Spec.Usages[:1] },
		`"digital signature" is missi`: func(c *csr) { c.Spec.Usages = c.Spec.Usages[1:] },
	} {
		c := request(t, Southbound, nodeAccount, "n1", "n1")
		change(c)
		if leaf, err := judge(c, namespace); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("judge: %+v, %v, want an error with %q", leaf, err, want)
		}
	}
}

// forged is a request whose signature is of something else.
func forged(t *testing.T, request []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(request)
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	// The last byte is one of the signature's.
	block.Bytes[len(r.Raw)-1] ^= 1
	return pem.EncodeToMemory(block)
}
