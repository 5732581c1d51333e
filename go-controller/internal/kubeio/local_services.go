package kubeio

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// localServices are all services as values, kept as their watch goes. What is
// wrong with one is told to its owner by the master, not by every node.
type localServices struct {
	mu      sync.Mutex
	byKey   map[string]*cluster.Service
	version uint64 // changes with any of them
}

func newLocalServices() *localServices {
	return &localServices{byKey: map[string]*cluster.Service{}, version: 1}
}

// Services are all services, in no order, and a number that is another one
// whenever they are. ok is false until they have been listed. They must not be
// modified.
func (l *Local) Services() (list []*cluster.Service, version uint64, ok bool) {
	if !l.serviceHandler.HasSynced() {
		return nil, 0, false
	}
	l.services.mu.Lock()
	defer l.services.mu.Unlock()
	return slices.Collect(maps.Values(l.services.byKey)), l.services.version, true
}

// handler keeps the services, and calls changed after each change of one.
func (s *localServices) handler(changed func()) cache.ResourceEventHandler {
	put := func(obj any) {
		service, ok := obj.(*corev1.Service)
		if !ok {
			return
		}
		now, _ := decodeService(service)
		key := service.Namespace + "/" + service.Name
		s.mu.Lock()
		was := s.byKey[key]
		same := was != nil && was.Equal(now)
		if !same {
			s.byKey[key] = now
			s.version++
		}
		s.mu.Unlock()
		if !same {
			changed()
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, after any) { put(after) },
		DeleteFunc: func(obj any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			if err != nil {
				return
			}
			s.mu.Lock()
			delete(s.byKey, key)
			s.version++
			s.mu.Unlock()
			changed()
		},
	}
}

// serviceLabels begins the labels that mean something to who serves a service
// (Kubernetes API, "Well-Known Labels, Annotations and Taints").
const serviceLabels = "service.kubernetes.io/"

// stripService keeps of a service what decodeService reads.
func stripService(s *corev1.Service) *corev1.Service {
	meta := localMeta(s.ObjectMeta, nil)
	meta.CreationTimestamp = s.CreationTimestamp
	for k, v := range s.Labels {
		if strings.HasPrefix(k, serviceLabels) { // those by which Kubernetes says who serves it
			metav1.SetMetaDataLabel(&meta, k, v)
		}
	}
	spec := s.Spec
	spec.Selector = nil
	out := &corev1.Service{ObjectMeta: meta, Spec: spec}
	out.Status.LoadBalancer = s.Status.LoadBalancer
	return out
}

// serviceListWatch lists and watches all services but those that are headless,
// which is no matter of a node's.
func (l *Local) serviceListWatch() cache.ListerWatcher {
	services := l.client.CoreV1().Services(metav1.NamespaceAll)
	return localListWatch(l.client, "spec.clusterIP!="+corev1.ClusterIPNone, services.List, services.Watch)
}
