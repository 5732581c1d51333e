// Package pki issues certificates: an authority for each of OVN's databases signs those of its servers and clients.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// How long certificates hold. They begin a little earlier, for machines whose clocks are behind.
const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	earlier           = 5 * time.Minute
	serialBits        = 128
)

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority makes an authority, and returns its certificate and its private key in PEM.
func NewAuthority(name string, now time.Time) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the key of authority %s: %w", name, err)
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-earlier), NotAfter: now.Add(authorityLifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, private.Public(), private)
	if err != nil {
		return nil, nil, fmt.Errorf("making the certificate of authority %s: %w", name, err)
	}
	k, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the key of authority %s: %w", name, err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", k), nil
}

// ParseAuthority reads an authority's certificate and private key in PEM.
func ParseAuthority(cert, key []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate and key: %w", err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("reading the authority's certificate: want one that may sign others (CA: true)")
	}
	return &Authority{cert: pair.Leaf, key: signer}, nil
}

// Leaf describes a certificate to sign.
type Leaf struct {
	CommonName string
	PublicKey  crypto.PublicKey
	Usages     []x509.ExtKeyUsage
	Lifetime   time.Duration
}

// Sign returns a certificate in PEM. It ends with the authority's own at the latest.
func (a *Authority) Sign(l Leaf, now time.Time) ([]byte, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	end := now.Add(l.Lifetime)
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: l.CommonName},
		NotBefore: now.Add(-earlier), NotAfter: end, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: l.Usages,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, l.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", l.CommonName, err)
	}
	return encode("CERTIFICATE", der), nil
}

// Issued returns an error unless the certificate is of one of the authorities in PEM and holds now.
func Issued(c *x509.Certificate, authorities []byte, now time.Time) error {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return errors.New("reading the authority's certificate: no PEM certificate in it")
	}
	_, err := c.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return fmt.Errorf("checking the certificate of %s: %w", c.Subject.CommonName, err)
	}
	return nil
}

func serialNumber() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return n, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
