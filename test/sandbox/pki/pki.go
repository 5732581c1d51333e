package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

const lifetime = 30 * 24 * time.Hour

// New makes an authority and writes ca.crt to dir.
func New(dir string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the authority's key: %w", err)
	}
	t := template("sandbox-ca", nil)
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the authority's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making the authority's certificate: %w", err)
	}
	a := &Authority{cert: cert, key: key, pem: encode("CERTIFICATE", der)}
	return a, write(filepath.Join(dir, "ca.crt"), a.pem)
}

func template(user string, groups []string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

func (a *Authority) issue(t *x509.Certificate) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the key of %s: %w", t.Subject.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the certificate of %s: %w", t.Subject.CommonName, err)
	}
	k, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the key of %s: %w", t.Subject.CommonName, err)
	}
	return encode("CERTIFICATE", der), encode("EC PRIVATE KEY", k), nil
}

// Server writes NAME.crt and NAME.key to dir, for addresses and host names.
func (a *Authority) Server(dir, name string, addrs []netip.Addr, hosts []string) error {
	t := template(name, nil)
	t.ExtKeyUsage, t.DNSNames = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, hosts
	for _, addr := range addrs {
		t.IPAddresses = append(t.IPAddresses, net.IP(addr.AsSlice()))
	}
	return a.pair(dir, name, t)
}

// Peer writes NAME.crt and NAME.key to dir, for a server that is a client of its peers, too.
func (a *Authority) Peer(dir, name string, hosts []string) error {
	t := template(name, nil)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	t.DNSNames = hosts
	return a.pair(dir, name, t)
}

// Client writes NAME.crt and NAME.key to dir, for a user in groups.
func (a *Authority) Client(dir, name, user string, groups ...string) error {
	t := template(user, groups)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.pair(dir, name, t)
}

func (a *Authority) pair(dir, name string, t *x509.Certificate) error {
	cert, key, err := a.issue(t)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, name+".crt"), cert); err != nil {
		return err
	}
	return write(filepath.Join(dir, name+".key"), key)
}

// Kubeconfig writes a kubeconfig file for a user in groups, which includes the certificates.
func (a *Authority) Kubeconfig(path, server, user string, groups ...string) error {
	t := template(user, groups)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	cert, key, err := a.issue(t)
	if err != nil {
		return err
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.pem}
	c.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	c.Contexts["sandbox"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: user}
	c.CurrentContext = "sandbox"
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}

// Key writes a private key, for signing service account tokens.
func Key(path string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making key %s: %w", path, err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return fmt.Errorf("encoding key %s: %w", path, err)
	}
	return write(path, encode("EC PRIVATE KEY", der))
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func write(path string, b []byte) error {
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
