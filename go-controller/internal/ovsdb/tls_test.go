package ovsdb

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// pki is an authority and one key pair signed by it, as files. The certificate names no host, like those that ovs-pki
// makes.
type pki struct{ ca, cert, key string }

func newPKI(t *testing.T) pki {
	t.Helper()
	dir := t.TempDir()
	p := pki{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	caKey, caDER := certificate(t, "authority", nil, nil)
	ca, err := x509.ParseCertificate(caDER)
	if err != nil {
		t.Fatal(err)
	}
	key, der := certificate(t, "ovnnb id:1", ca, caKey)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, p.ca, "CERTIFICATE", caDER)
	writePEM(t, p.cert, "CERTIFICATE", der)
	writePEM(t, p.key, "PRIVATE KEY", keyDER)
	return p
}

func certificate(
	t *testing.T, name string, parent *x509.Certificate, signer *ecdsa.PrivateKey,
) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	if parent == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTLS(t *testing.T) {
	ours, others := newPKI(t), newPKI(t)
	address := startTLS(t, ours)
	for _, c := range []struct {
		name    string
		keys    config.Keys
		problem string
	}{
		{"right", config.Keys{PrivKey: ours.key, Cert: ours.cert, CACert: ours.ca}, ""},
		{"another authority", config.Keys{PrivKey: ours.key, Cert: ours.cert, CACert: others.ca},
			"with CA certificate " + others.ca},
		{"no certificate", config.Keys{CACert: ours.ca}, "reading --nb-privkey, --nb-cert and --nb-cacert"},
		{"key of another", config.Keys{PrivKey: others.key, Cert: ours.cert, CACert: ours.ca}, "private key " + others.key},
		{"not a certificate", config.Keys{PrivKey: ours.key, Cert: ours.cert, CACert: ours.key}, "no PEM certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := config.OVSDB{Addresses: []string{address}, Keys: c.keys}
			cl, err := connect(context.Background(), to, nb.NewSchema(), func() {})
			if err == nil {
				cl.Close()
			}
			if got := errorText(err); c.problem == "" && got != "" || !strings.Contains(got, c.problem) {
				t.Errorf("error %q, want one with %q", got, c.problem)
			}
		})
	}
}

// The files are read for each connection: once an operator has replaced them, the next connection uses the new ones.
func TestKeysReplaced(t *testing.T) {
	ours, files := newPKI(t), newPKI(t)
	c := config.OVSDB{Addresses: []string{startTLS(t, ours)},
		Keys: config.Keys{PrivKey: files.key, Cert: files.cert, CACert: files.ca}}
	d := New(c, nb.NewSchema(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	testkit.Eventually(t, "the old files are refused", func() string {
		if got := errorText(d.Failure()); !strings.Contains(got, "with CA certificate "+files.ca) {
			return "got " + got
		}
		return ""
	})
	for from, to := range map[string]string{ours.ca: files.ca, ours.cert: files.cert, ours.key: files.key} {
		raw, err := os.ReadFile(from)
		if err == nil {
			err = atomicfile.Write(to, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "the new files are used", func() string {
		if d.Session() == nil {
			return errorText(d.Failure())
		}
		return ""
	})
}

// startTLS starts a server with these keys. It returns its address.
func startTLS(t *testing.T, p pki) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close() // the server takes the port that is free now
	testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"], fmt.Sprintf("--remote=pssl:%d:127.0.0.1", port),
		"--private-key="+p.key, "--certificate="+p.cert, "--ca-cert="+p.ca)
	// Its socket may answer before this port does. A port that another program took meanwhile, it tries again.
	testkit.Eventually(t, "the server listens for TLS", func() string {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return err.Error()
		}
		return errorText(conn.Close())
	})
	return "ssl:" + l.Addr().String()
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
