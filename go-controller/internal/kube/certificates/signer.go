package certificates

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/certificates/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// again is how long a program waits after a failure that concerns all requests.
const again = 5 * time.Second

// How long the signer waits before it tries a request again, at first and at most.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 15 * time.Second
)

// reason of the conditions that the signer sets. Their messages are cut after maxMessage bytes.
const (
	reason     = "Northbound"
	maxMessage = 256
)

// Signer answers requests for certificates. Several may run at the same time.
type Signer struct {
	Kube      kubernetes.Interface
	Namespace string // of the authorities, and of the ServiceAccounts that get certificates
	Log       *slog.Logger

	queue workqueue.TypedRateLimitingInterface[string]
}

// Run answers requests until ctx ends.
func (s *Signer) Run(ctx context.Context) error {
	if !s.awaitAuthorities(ctx) {
		return nil
	}
	s.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry))
	defer s.queue.ShutDown()
	var found []listers.CertificateSigningRequestLister
	for _, a := range authorities() {
		f := informers.NewSharedInformerFactoryWithOptions(s.Kube, 0, informers.WithTweakListOptions(
			func(o *metav1.ListOptions) { o.FieldSelector = "spec.signerName=" + signerName(a) }))
		requests := f.Certificates().V1().CertificateSigningRequests()
		if _, err := requests.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: s.enqueue, UpdateFunc: func(_, now any) { s.enqueue(now) },
		}); err != nil {
			return fmt.Errorf("watching the requests of signer %s: %w", signerName(a), err)
		}
		found = append(found, requests.Lister())
		f.StartWithContext(ctx)
		defer f.Shutdown()
	}
	s.Log.Info("signing certificates", "namespace", s.Namespace)
	go func() {
		s.guard(ctx)
		s.queue.ShutDown()
	}()
	for s.next(ctx, found) {
		continue
	}
	return nil
}

// awaitAuthorities makes what is missing of the authorities, and publishes their certificates. It returns false if ctx
// ends before.
func (s *Signer) awaitAuthorities(ctx context.Context) bool {
	for ctx.Err() == nil {
		err := s.ensureAuthorities(ctx)
		if err == nil {
			return true
		}
		s.Log.Warn("the authorities are not ready", "error", err, "retry", again)
		wait(ctx, again)
	}
	return false
}

func (s *Signer) ensureAuthorities(ctx context.Context) error {
	var errs []error
	for _, a := range authorities() {
		_, err := s.ensureAuthority(ctx, a)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// guard makes an authority again that was removed, and publishes one that has changed.
func (s *Signer) guard(ctx context.Context) {
	for wait(ctx, lookForAuthority); ctx.Err() == nil; wait(ctx, lookForAuthority) {
		if err := s.ensureAuthorities(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("the authorities are not ready", "error", err)
		}
	}
}

func (s *Signer) enqueue(object any) {
	if csr, ok := object.(*certificatesv1.CertificateSigningRequest); ok && open(csr) {
		s.queue.Add(csr.Name)
	}
}

// open tells whether a request waits for the answer of one of our signers.
func open(csr *certificatesv1.CertificateSigningRequest) bool {
	if !slices.ContainsFunc(authorities(), func(a string) bool { return signerName(a) == csr.Spec.SignerName }) {
		return false
	}
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return false
		}
	}
	return len(csr.Status.Certificate) == 0
}

// next answers one request. It returns false when the queue has ended.
func (s *Signer) next(ctx context.Context, found []listers.CertificateSigningRequestLister) bool {
	name, ended := s.queue.Get()
	if ended {
		return false
	}
	defer s.queue.Done(name)
	for _, l := range found {
		csr, err := l.Get(name)
		if err != nil || !open(csr) {
			continue
		}
		if err := s.answer(ctx, csr.DeepCopy()); err != nil {
			s.Log.Warn("a request could not be answered", "request", name, "error", err)
			s.queue.AddRateLimited(name)
			return true
		}
	}
	s.queue.Forget(name)
	return true
}

// answer signs a request or denies it. Another signer may have been faster: its answer arrives as an event.
func (s *Signer) answer(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	log := s.Log.With("request", csr.Name, "signer", csr.Spec.SignerName, "user", csr.Spec.Username)
	leaf, denied := judge(csr, s.Namespace)
	requests := s.Kube.CertificatesV1().CertificateSigningRequests()
	if denied != nil {
		log.Warn("certificate denied", "reason", cut(denied.Error()))
		return s.deny(ctx, csr, denied)
	}
	authority := Northbound
	if csr.Spec.SignerName == signerName(Southbound) {
		authority = Southbound
	}
	a, err := s.ensureAuthority(ctx, authority)
	if err != nil {
		return err
	}
	if condition(csr, certificatesv1.CertificateApproved, "the requester may have this certificate") {
		if csr, err = requests.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{}); err != nil {
			return lost(err)
		}
	}
	if csr.Status.Certificate, err = a.Sign(leaf, time.Now()); err != nil {
		return err
	}
	if _, err = requests.UpdateStatus(ctx, csr, metav1.UpdateOptions{}); err == nil {
		log.Info("certificate issued", "name", leaf.CommonName, "lifetime", leaf.Lifetime)
	}
	return lost(err)
}

// deny answers a request that nobody may have signed. One that somebody else has approved can only fail.
func (s *Signer) deny(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, why error) error {
	requests := s.Kube.CertificatesV1().CertificateSigningRequests()
	if slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	}) {
		condition(csr, certificatesv1.CertificateFailed, why.Error())
		_, err := requests.UpdateStatus(ctx, csr, metav1.UpdateOptions{})
		return lost(err)
	}
	condition(csr, certificatesv1.CertificateDenied, why.Error())
	_, err := requests.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
	return lost(err)
}

// cut returns the beginning of a message. Parts of it may be the requester's.
func cut(message string) string {
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	return message
}

// condition adds a condition, unless the request has it.
func condition(csr *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType,
	why string) bool {
	for _, c := range csr.Status.Conditions {
		if c.Type == kind {
			return false
		}
	}
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: cut(why), LastUpdateTime: metav1.Now()})
	return true
}

// lost is err, unless it says that the request was answered or removed meanwhile.
func lost(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
