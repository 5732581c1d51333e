package alerts

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// certificateFile is where a node has its certificate and the key of it.
const certificateFile = "/var/lib/northbound/certificates/ovn-sb-current.pem"

// certificate stops the signer, and gives a node a certificate that ends in six days. Its agent starts again, as on a
// machine that boots, and asks for another in vain until the signer is back.
func (p *prometheus) certificate(t *testing.T) {
	n := p.last()
	scale := []string{"scale", "deployment/ovnkube-signer", "--replicas"}
	kubectl(t, p.Cluster, "", append(scale, "0")...)
	kubectl(t, p.Cluster, "", "wait", "--for=delete", "pod", "--selector", "app=ovnkube-signer", "--timeout=60s")
	old := p.aged(t, machines.Run(t, n, "cat", certificateFile))
	machines.Run(t, n, "sh", "-c", `file=$(readlink -f "$1") && printf %s "$2" > "$file.new" && mv "$file.new" "$file"`,
		"sh", certificateFile, old)
	kubectl(t, p.Cluster, "", "delete", "pod", "--selector", "app=ovnkube-node", "--field-selector",
		"spec.nodeName="+n.Spec.Name)
	p.fires(t, "while nobody renews a certificate", "NorthboundCertificateExpires")
	kubectl(t, p.Cluster, "", append(scale, "1")...)
	p.quiet(t, "when the certificate is renewed")
	if machines.Run(t, n, "cat", certificateFile) == old {
		t.Error("the node still has the old certificate")
	}
}

// aged is a certificate with its key, in PEM, as it would be had it been issued 84 of its 90 days ago.
func (p *prometheus) aged(t *testing.T, text string) string {
	t.Helper()
	held, err := tls.X509KeyPair([]byte(text), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(kubectl(t, p.Cluster, "", "get", "secret", "ovn-sb-ca", "--output",
		`jsonpath={.data.tls\.crt} {.data.tls\.key}`))
	var authority [2][]byte
	for i, field := range fields {
		if authority[i], err = base64.StdEncoding.DecodeString(field); err != nil {
			t.Fatal(err)
		}
	}
	signer, err := tls.X509KeyPair(authority[0], authority[1])
	if err != nil {
		t.Fatal(err)
	}
	template, day := *held.Leaf, 24*time.Hour
	template.NotBefore, template.NotAfter = time.Now().Add(-84*day), time.Now().Add(6*day)
	der, err := x509.CreateCertificate(rand.Reader, &template, signer.Leaf, held.Leaf.PublicKey, signer.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(held.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}
