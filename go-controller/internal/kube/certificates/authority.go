package certificates

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/go-controller/internal/pki"
)

// Authorities, one for each database.
const (
	Northbound = "nb"
	Southbound = "sb"
)

func authorities() []string { return []string{Northbound, Southbound} }

// signerName is the signer of an authority in CertificateSigningRequests.
func signerName(authority string) string { return "northbound.io/ovn-" + authority }

// objectName is the name of an authority's Secret, which has its private key, and of its ConfigMap, which has the
// certificate that others trust.
func objectName(authority string) string { return "ovn-" + authority + "-ca" }

// SignerNames are the signers of all authorities.
func SignerNames() (out []string) {
	for _, a := range authorities() {
		out = append(out, signerName(a))
	}
	return out
}

// ObjectNames are the names of all authorities' Secrets and ConfigMaps.
func ObjectNames() (out []string) {
	for _, a := range authorities() {
		out = append(out, objectName(a))
	}
	return out
}

// caKey is the key of the certificate in the ConfigMap.
const caKey = "ca.crt"

// ensureAuthority reads an authority, and makes it first if there is none. It publishes its certificate.
func (s *Signer) ensureAuthority(ctx context.Context, authority string) (*pki.Authority, error) {
	kube, namespace, name := s.Kube, s.Namespace, objectName(authority)
	secret, err := kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.Log.Warn("making a new authority: certificates of an earlier one become invalid", "secret", name)
		if err = makeAuthority(ctx, kube, namespace, name); err == nil {
			secret, err = kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, name, err)
	}
	a, err := pki.ParseAuthority(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w: want tls.crt and tls.key in PEM; a Secret that is deleted is "+
			"made anew", namespace, name, err)
	}
	return a, publish(ctx, kube, namespace, name, string(secret.Data[corev1.TLSCertKey]))
}

// makeAuthority makes the Secret of an authority. Another signer may be faster.
func makeAuthority(ctx context.Context, kube kubernetes.Interface, namespace, name string) error {
	cert, key, err := pki.NewAuthority(name, time.Now())
	if err != nil {
		return err
	}
	_, err = kube.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// publish makes the ConfigMap hold an authority's certificate.
func publish(ctx context.Context, kube kubernetes.Interface, namespace, name, cert string) error {
	objects := kube.CoreV1().ConfigMaps(namespace)
	have, err := objects.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = objects.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name},
			Data: map[string]string{caKey: cert}}, metav1.CreateOptions{})
	case err == nil && have.Data[caKey] != cert:
		have.Data = map[string]string{caKey: cert}
		_, err = objects.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", namespace, name, err)
	}
	return nil
}
