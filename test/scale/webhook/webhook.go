package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/northbound-net/northbound/test/sandbox/pki"
)

// name is that of the configuration and of the webhook in it.
const name = "slow.webhook.example"

// Webhook admits every change of a pod.
type Webhook struct {
	server *httptest.Server
	kube   kubernetes.Interface
	hold   func(ctx context.Context, pod string)
}

// Start serves, with certificates in a directory of its own below dir, and has the API server ask before it changes a
// pod. The answer waits until hold returns. hold gets the context of the API server's question and the pod's name.
func Start(
	ctx context.Context, dir string, kube kubernetes.Interface, hold func(ctx context.Context, pod string),
) (*Webhook, error) {
	dir, err := os.MkdirTemp(dir, "webhook")
	if err != nil {
		return nil, fmt.Errorf("making a directory for the webhook: %w", err)
	}
	authority, err := pki.New(dir)
	if err != nil {
		return nil, err
	}
	if err := authority.Server(dir, "webhook", []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil); err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the webhook's authority: %w", err)
	}
	keys, err := tls.LoadX509KeyPair(filepath.Join(dir, "webhook.crt"), filepath.Join(dir, "webhook.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the webhook's keys: %w", err)
	}
	h := &Webhook{kube: kube, hold: hold}
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(h.review))
	h.server.TLS = &tls.Config{Certificates: []tls.Certificate{keys}}
	h.server.StartTLS()
	_, err = kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, h.configuration(ca),
		metav1.CreateOptions{})
	if err != nil {
		h.server.Close()
		return nil, fmt.Errorf("registering the webhook: %w", err)
	}
	return h, nil
}

// Close has the API server ask no more, and ends the webhook. No change may wait any more.
func (h *Webhook) Close(ctx context.Context) error {
	err := h.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, name, metav1.DeleteOptions{})
	h.server.Close()
	if err != nil {
		return fmt.Errorf("taking back the webhook: %w", err)
	}
	return nil
}

// review answers an AdmissionReview (Kubernetes API, admission.k8s.io/v1).
func (h *Webhook) review(out http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(out, fmt.Sprint("no AdmissionReview: ", err), http.StatusBadRequest)
		return
	}
	h.hold(r.Context(), review.Request.Name)
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	_ = json.NewEncoder(out).Encode(review) // whoever asked may have gone
}

func (h *Webhook) configuration(ca []byte) *registrationv1.ValidatingWebhookConfiguration {
	return &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: name, AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: ptr.To[int32](30),
			ClientConfig:  registrationv1.WebhookClientConfig{URL: &h.server.URL, CABundle: ca},
			FailurePolicy: ptr.To(registrationv1.Ignore), SideEffects: ptr.To(registrationv1.SideEffectClassNone),
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Update},
				Rule: registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"pods", "pods/status"}},
			}},
		}},
	}
}
