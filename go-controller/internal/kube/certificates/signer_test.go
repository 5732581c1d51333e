package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/pki"
)

const deadline = 30 * time.Second

// eventually waits until ok returns "", or fails with what it returned last.
func eventually(t *testing.T, what string, ok func() string) {
	t.Helper()
	for end := time.Now().Add(deadline); ; {
		why := ok()
		if why == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %s", what, why)
		}
		wait(t.Context(), 10*time.Millisecond)
	}
}

// served is an API server whose requests come from a ServiceAccount of a Pod on node n1, with two signers.
func served(t *testing.T, account string) *fake.Clientset {
	t.Helper()
	kube := fake.NewSimpleClientset()
	kube.PrependReactor("create", "certificatesigningrequests",
		func(a clienttesting.Action) (bool, runtime.Object, error) {
			csr := a.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
			if csr.Name == "" {
				csr.Name = "csr-" + time.Now().Format("150405.000000000")
			}
			if csr.Spec.Username == "" {
				csr.Spec.Username = "system:serviceaccount:" + namespace + ":" + account
				csr.Spec.Extra = map[string]certificatesv1.ExtraValue{nodeNameKey: {"n1"}}
			}
			return false, nil, nil
		})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for range 2 {
		s := &Signer{Kube: kube, Namespace: namespace, Log: slog.New(slog.DiscardHandler)}
		running.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return kube
}

// kept runs a Keeper until the test ends, and returns once its files can be used.
func kept(t *testing.T, k Keeper) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- k.Run(ctx, sync.OnceFunc(func() { close(ready) })) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case <-time.After(deadline):
		t.Fatal("the certificate is not ready")
	}
}

// leaf reads the certificate and its key from the file that Open vSwitch and Go are given for both.
func leaf(t *testing.T, k Keeper) *x509.Certificate {
	t.Helper()
	file := filepath.Join(k.Directory, "ovn-"+k.Wanted.Authority+"-current.pem")
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(k.caFile())
	if err != nil {
		t.Fatal(err)
	}
	if err := pki.Issued(pair.Leaf, ca, time.Now()); err != nil {
		t.Error(err)
	}
	return pair.Leaf
}

// TestKeeper gets certificates from two signers at once, keeps them, works without the API server, and replaces what is
// of another authority or name.
func TestKeeper(t *testing.T) {
	kube := served(t, nodeAccount)
	k := Keeper{Kube: kube, Namespace: namespace, Directory: t.TempDir(), Wanted: Of(Node, "n1")[0],
		Log: slog.New(slog.DiscardHandler)}
	var first, again, other *x509.Certificate
	t.Run("first", func(t *testing.T) {
		kept(t, k)
		if first = leaf(t, k); first.Subject.String() != "CN=n1" {
			t.Errorf("subject %s, want CN=n1", first.Subject)
		}
	})
	t.Run("again", func(t *testing.T) {
		kept(t, k)
		if again = leaf(t, k); !again.Equal(first) {
			t.Error("a certificate that was good has been replaced")
		}
	})
	t.Run("no API server", func(t *testing.T) {
		offline := k
		offline.Kube = fake.NewSimpleClientset() // it knows no authority
		kept(t, offline)
	})
	t.Run("another authority", func(t *testing.T) {
		cert, private, err := pki.NewAuthority("new", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		secrets := kube.CoreV1().Secrets(namespace)
		s, err := secrets.Get(t.Context(), objectName(Southbound), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Data = map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: private}
		if _, err := secrets.Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := publish(t.Context(), kube, namespace, objectName(Southbound), string(cert)); err != nil {
			t.Fatal(err)
		}
		// The fake finds objects of any name; the API server removes requests after an hour.
		requests := kube.CertificatesV1().CertificateSigningRequests()
		all, err := requests.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, csr := range all.Items {
			if err := requests.Delete(t.Context(), csr.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		kept(t, k)
		if other = leaf(t, k); other.Equal(first) || other.Issuer.CommonName != "new" {
			t.Errorf("issuer %s, want new", other.Issuer)
		}
	})
}

// TestSignerAnswers answers every request of its own, whatever it is, and no other.
func TestSignerAnswers(t *testing.T) {
	kube := served(t, nodeAccount)
	requests := kube.CertificatesV1().CertificateSigningRequests()
	good, hostile := request(t, Southbound, nodeAccount, "n1", "n1"), request(t, Southbound, nodeAccount, "n1",
		strings.Repeat("x", 2000))
	hostile.Name = "hostile"
	approved := request(t, Southbound, nodeAccount, "n1", "n2")
	condition(approved, certificatesv1.CertificateApproved, "somebody approves everything")
	foreign := request(t, Southbound, nodeAccount, "n1", "n3")
	foreign.Spec.SignerName = "example.com/signer"
	for _, csr := range []*certificatesv1.CertificateSigningRequest{foreign, hostile, approved, good} {
		if _, err := requests.Create(t.Context(), csr, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []struct {
		name string
		want certificatesv1.RequestConditionType
		cert bool
	}{
		{good.Name, certificatesv1.CertificateApproved, true},
		{hostile.Name, certificatesv1.CertificateDenied, false},
		{approved.Name, certificatesv1.CertificateFailed, false},
	} {
		eventually(t, k.name, func() string {
			csr, err := requests.Get(t.Context(), k.name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			for _, c := range csr.Status.Conditions {
				if len(c.Message) > maxMessage+len("...") {
					t.Fatalf("a message of %d bytes: want at most %d", len(c.Message), maxMessage)
				}
				if c.Type == k.want && k.cert == (len(csr.Status.Certificate) > 0) {
					return ""
				}
			}
			return "no condition " + string(k.want)
		})
	}
	csr, err := requests.Get(t.Context(), foreign.Name, metav1.GetOptions{})
	if err != nil || len(csr.Status.Conditions) > 0 {
		t.Errorf("a request of another signer was answered: %v, %v", csr.Status.Conditions, err)
	}
}

// TestBrokenAuthority never overwrites a Secret that cannot be read, and says what is wrong.
func TestBrokenAuthority(t *testing.T) {
	kube := fake.NewSimpleClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: objectName(Northbound)}, Data: map[string][]byte{corev1.TLSCertKey: []byte("x")}})
	s := &Signer{Kube: kube, Namespace: namespace, Log: slog.New(slog.DiscardHandler)}
	_, err := s.ensureAuthority(t.Context(), Northbound)
	if err == nil || !strings.Contains(err.Error(), "Secret ovn-kubernetes/ovn-nb-ca") {
		t.Errorf("ensureAuthority: %v, want an error that names the Secret", err)
	}
	have, err := kube.CoreV1().Secrets(namespace).Get(t.Context(), objectName(Northbound), metav1.GetOptions{})
	if err != nil || string(have.Data[corev1.TLSCertKey]) != "x" {
		t.Errorf("the Secret is %q, %v, want it as it was", have.Data, err)
	}
}
