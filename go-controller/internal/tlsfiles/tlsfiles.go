// Package tlsfiles reads the files of a TLS connection to an OVSDB server: a private key, its certificate, and the
// certificate of the authority that the server's certificate must be of. Nothing is kept, so that a new connection uses
// the files as they are then.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// Load reads the files.
func Load(k config.Keys) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(k.Cert, k.PrivKey)
	if err != nil {
		return nil, fmt.Errorf("loading certificate %s and private key %s: %w", k.Cert, k.PrivKey, err)
	}
	pem, err := os.ReadFile(k.CACert)
	if err != nil {
		return nil, fmt.Errorf("loading the CA certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("loading CA certificate %s: no PEM certificate in it", k.CACert)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		// Certificates of Open vSwitch's own PKI name no host (ovs-pki(8)), and OVN's programs do not look for one:
		// they trust whatever the authority has signed. So do we; the chain is checked all the same.
		InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			intermediates := x509.NewCertPool()
			for _, c := range cs.PeerCertificates[1:] {
				intermediates.AddCert(c)
			}
			_, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: intermediates,
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			if err != nil {
				return fmt.Errorf("checking the server's certificate with CA certificate %s: %w", k.CACert, err)
			}
			return nil
		},
	}, nil
}
