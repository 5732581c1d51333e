package kubeio

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Services are all services, in no order, and a number that is another one
// whenever they are. ok is false until they have been listed. They must not be
// modified.
func (l *Local) Services() (list []*cluster.Service, version uint64, ok bool) {
	if !l.serviceHandler.HasSynced() {
		return nil, 0, false
	}
	list, version = l.services.all()
	return list, version, true
}

// serviceEvents keeps services, and then has their slices kept accordingly.
func (l *Local) serviceEvents() cache.ResourceEventHandler {
	keep := l.services.handler(localService, func() { l.nodeEvent("") })
	follow := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			l.followService(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { keep.OnAdd(obj, false); follow(obj) },
		UpdateFunc: func(before, after any) { keep.OnUpdate(before, after); follow(after) },
		DeleteFunc: func(obj any) { keep.OnDelete(obj); follow(obj) },
	}
}

func localService(obj any) (*cluster.Service, bool) {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return nil, false
	}
	now, _ := decodeService(service)
	return now, true
}

// serviceLabels begins the labels that mean something to who serves a service
// (Kubernetes API, "Well-Known Labels, Annotations and Taints").
const serviceLabels = "service.kubernetes.io/"

// stripService keeps of a service what decodeService reads.
func stripService(s *corev1.Service) *corev1.Service {
	meta := localMeta(s.ObjectMeta, nil)
	meta.CreationTimestamp = s.CreationTimestamp
	keepServiceLabels(&meta, s.Labels)
	spec := s.Spec
	spec.Selector = nil
	out := &corev1.Service{ObjectMeta: meta, Spec: spec}
	out.Status.LoadBalancer = s.Status.LoadBalancer
	return out
}

// keepServiceLabels adds of some labels those by which Kubernetes says who serves.
func keepServiceLabels(meta *metav1.ObjectMeta, labels map[string]string) {
	for k, v := range labels {
		if strings.HasPrefix(k, serviceLabels) {
			metav1.SetMetaDataLabel(meta, k, v)
		}
	}
}

// serviceListWatch lists and watches all services but those that are headless,
// which is no matter of a node's.
func (l *Local) serviceListWatch() cache.ListerWatcher {
	services := l.client.CoreV1().Services(metav1.NamespaceAll)
	return localListWatch(l.client, "spec.clusterIP!="+corev1.ClusterIPNone, services.List, services.Watch)
}
