package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func authority(t *testing.T) (a *Authority, dir string, roots *x509.CertPool) {
	t.Helper()
	dir = t.TempDir()
	a, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatal("ca.crt holds no certificate")
	}
	return a, dir, roots
}

// TestServer checks that a client that trusts ca.crt accepts the server at its addresses and by its name, and at no
// others.
func TestServer(t *testing.T) {
	a, dir, roots := authority(t)
	addrs := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	if err := a.Server(dir, "server", addrs, []string{"kubernetes"}); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{"192.0.2.1": true, "2001:db8::1": true, "kubernetes": true, "192.0.2.2": false,
		"other": false} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		if (err == nil) != want {
			t.Errorf("%s: %v, want accepted: %v", host, err, want)
		}
	}
}

// TestPeer checks that servers of a cluster accept each other's certificate both as a server's and as a client's.
func TestPeer(t *testing.T) {
	a, dir, roots := authority(t)
	if err := a.Peer(dir, "server", []string{"nb"}); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("usage %v: %v", usage, err)
		}
	}
}

// TestKubeconfig checks that a kubeconfig has the requested identity, with a certificate for clients only.
func TestKubeconfig(t *testing.T) {
	a, dir, roots := authority(t)
	file := filepath.Join(dir, "k")
	if err := a.Kubeconfig(file, "https://192.0.2.1:6443", "system:node:n1", "system:nodes"); err != nil {
		t.Fatal(err)
	}
	conf, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(conf.CertData, conf.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	who := pair.Leaf.Subject
	if conf.Host != "https://192.0.2.1:6443" || who.CommonName != "system:node:n1" || !slices.Equal(who.Organization,
		[]string{"system:nodes"}) {
		t.Errorf("%s is %s in %v", conf.Host, who.CommonName, who.Organization)
	}
	for usage, want := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageClientAuth: true,
		x509.ExtKeyUsageServerAuth: false} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
		if (err == nil) != want {
			t.Errorf("usage %v: %v, want accepted: %v", usage, err, want)
		}
	}
}
