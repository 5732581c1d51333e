package chaos

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/northbound-net/northbound/test/sandbox/pki"
	"github.com/northbound-net/northbound/test/scale/load"
)

const (
	webhookName = "slow.chaos.example"
	patched     = 60 // pods that come while the webhook is slow
	slowEvery   = 2  // of which the webhook lets every second wait: more than the master patches at a time
	firstSlow   = 90000
)

// webhook admits every change of a pod. It lets those of some pods wait until it is released.
type webhook struct {
	*httptest.Server
	ca      []byte
	release chan struct{}

	mu    sync.Mutex
	asked int
	waits map[string]int // how often it was asked, by the names of pods
}

// isSlow tells whether the webhook lets changes of the pod wait.
func isSlow(name string) bool {
	for i := firstSlow; i < firstSlow+patched; i += slowEvery {
		if name == load.PodName(i) {
			return true
		}
	}
	return false
}

// webhookSlow has pods come while a webhook lets patches of every second one wait. The others are served meanwhile: not
// only when the master has given up its first attempts for those that wait, and makes the next.
//
// Nodes stay meanwhile. A webhook may admit a patch that the master has given up. If the Node was replaced before that,
// the pod gets other addresses, before it has a port.
func webhookSlow(ctx context.Context, w *world) (err error) {
	w.churn.keepNodes.Store(true)
	defer w.churn.keepNodes.Store(false)
	hook, err := startWebhook(w.Dir)
	if err != nil {
		return err
	}
	defer hook.Close()
	released := sync.OnceFunc(func() { close(hook.release) })
	defer released()
	configurations := w.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := configurations.Create(ctx, hook.configuration(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("registering the webhook: %w", err)
	}
	defer func() {
		err = errors.Join(err, configurations.Delete(ctx, webhookName, metav1.DeleteOptions{}))
	}()
	if err := w.eventually(ctx, "the webhook is asked", hook.wasAsked); err != nil {
		return err
	}
	err = load.Parallel(ctx, patched, func(ctx context.Context, i int) error {
		_, _, err := load.CreatePod(ctx, w.Kube, namespace, firstSlow+i, nodes)
		return err
	})
	defer func() { err = errors.Join(err, w.deletePods(ctx, firstSlow, patched)) }()
	if err != nil {
		return err
	}
	if err := w.eventually(ctx, "the webhook has all that it lets wait", hook.hasAll); err != nil {
		return err
	}
	if err := w.eventually(ctx, "the other pods have addresses", w.othersServed); err != nil {
		return err
	}
	if again := hook.askedAgain(); again > patched/slowEvery/2 {
		return fmt.Errorf("when the other pods had addresses, the webhook had been asked again about %d pods", again)
	}
	released()
	return nil
}

// startWebhook serves with certificates in a directory of its own below dir.
func startWebhook(dir string) (*webhook, error) {
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
	h := &webhook{release: make(chan struct{}), waits: map[string]int{}}
	if h.ca, err = os.ReadFile(filepath.Join(dir, "ca.crt")); err != nil {
		return nil, fmt.Errorf("reading the webhook's authority: %w", err)
	}
	keys, err := tls.LoadX509KeyPair(filepath.Join(dir, "webhook.crt"), filepath.Join(dir, "webhook.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the webhook's keys: %w", err)
	}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(h.review))
	h.TLS = &tls.Config{Certificates: []tls.Certificate{keys}}
	h.StartTLS()
	return h, nil
}

// review answers an AdmissionReview (Kubernetes API, admission.k8s.io/v1).
func (h *webhook) review(out http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(out, fmt.Sprint("no AdmissionReview: ", err), http.StatusBadRequest)
		return
	}
	name := review.Request.Name
	h.mu.Lock()
	h.asked++
	if isSlow(name) {
		h.waits[name]++
	}
	h.mu.Unlock()
	if isSlow(name) {
		select {
		case <-h.release:
		case <-r.Context().Done():
		}
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	_ = json.NewEncoder(out).Encode(review) // whoever asked may have gone
}

func (h *webhook) configuration() *registrationv1.ValidatingWebhookConfiguration {
	return &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhookName},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: webhookName, AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: ptr.To[int32](30),
			ClientConfig:  registrationv1.WebhookClientConfig{URL: &h.URL, CABundle: h.ca},
			FailurePolicy: ptr.To(registrationv1.Ignore), SideEffects: ptr.To(registrationv1.SideEffectClassNone),
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Update},
				Rule: registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"pods", "pods/status"}},
			}},
		}},
	}
}

// wasAsked says that nobody has asked the webhook yet.
func (h *webhook) wasAsked(context.Context) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked == 0 {
		return "nobody has asked", nil
	}
	return "", nil
}

// hasAll says how many changes the webhook lets wait, if these are not all yet.
func (h *webhook) hasAll(context.Context) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waits) < patched/slowEvery {
		return fmt.Sprintf("%d wait", len(h.waits)), nil
	}
	return "", nil
}

// askedAgain is how many of the pods that wait it was asked about more than once.
func (h *webhook) askedAgain() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, times := range h.waits {
		if times > 1 {
			n++
		}
	}
	return n
}

// othersServed names the pods that have no addresses, although the webhook does not let them wait. Those that it lets
// wait have none.
func (w *world) othersServed(ctx context.Context) (string, error) {
	pods, err := w.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	byName := map[string]*corev1.Pod{}
	for i := range pods.Items {
		byName[pods.Items[i].Name] = &pods.Items[i]
	}
	var waiting []string
	for i := firstSlow; i < firstSlow+patched; i++ {
		name := load.PodName(i)
		has := byName[name] != nil && byName[name].Annotations[load.PodNetworks] != ""
		if has && isSlow(name) {
			return "", fmt.Errorf("pod %s has addresses before the webhook has admitted them", name)
		}
		if !has && !isSlow(name) {
			waiting = append(waiting, name)
		}
	}
	return strings.Join(waiting, " "), nil
}

// deletePods removes n pods from first on.
func (w *world) deletePods(ctx context.Context, first, n int) error {
	return load.Parallel(ctx, n, func(ctx context.Context, i int) error {
		now := int64(0)
		return w.Kube.CoreV1().Pods(namespace).Delete(ctx, load.PodName(first+i),
			metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
}
