package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
)

// Backends is the number of endpoints of a service.
const Backends = 10

// ServiceName is the name of the i-th service of a namespace, and of its slice.
func ServiceName(i int) string { return fmt.Sprintf("web-%05d", i) }

// CreateService makes the i-th service of a namespace, with a slice of Backends endpoints, and returns its cluster IP.
// It has no selector, so that no controller changes the slice.
func CreateService(ctx context.Context, kube kubernetes.Interface, namespace string, i int) (clusterIP string,
	err error) {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ServiceName(i)},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	if s, err = kube.CoreV1().Services(namespace).Create(ctx, s, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("making a service: %w", err)
	}
	return s.Spec.ClusterIP, createSlice(ctx, kube, slice(namespace, i, Backends))
}

func createSlice(ctx context.Context, kube kubernetes.Interface, e *discoveryv1.EndpointSlice) error {
	if _, err := kube.DiscoveryV1().EndpointSlices(e.Namespace).Create(ctx, e, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making an endpoint slice: %w", err)
	}
	return nil
}

// CreateDualService makes the i-th service of a namespace, of both address families, without endpoints.
func CreateDualService(ctx context.Context, kube kubernetes.Interface, namespace string, i int) error {
	policy := corev1.IPFamilyPolicyRequireDualStack
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ServiceName(i)},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}, IPFamilyPolicy: &policy},
	}
	if _, err := kube.CoreV1().Services(namespace).Create(ctx, s, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a service: %w", err)
	}
	return nil
}

// CreateBackends makes Backends endpoints of one family for the i-th service of a namespace.
func CreateBackends(ctx context.Context, kube kubernetes.Interface, namespace string, i int, is4 bool) error {
	e := slice(namespace, i, Backends)
	if !is4 {
		e.Name += "-v6"
		e.AddressType = discoveryv1.AddressTypeIPv6
		for j := range e.Endpoints {
			e.Endpoints[j].Addresses = []string{fmt.Sprintf("fd01:0:0:%x::%x", 1+i&0x3ff, 0x1000+Backends*(i>>10)+j)}
		}
	}
	return createSlice(ctx, kube, e)
}

// SetBackends changes the number of endpoints of the i-th service, and returns when the request was sent and when it
// was answered.
func SetBackends(ctx context.Context, kube kubernetes.Interface, namespace string, i, n int) (sent, answered time.Time,
	err error) {
	sent = time.Now()
	if _, err := kube.DiscoveryV1().EndpointSlices(namespace).Update(ctx, slice(namespace, i, n),
		metav1.UpdateOptions{}); err != nil {
		return sent, sent, fmt.Errorf("changing an endpoint slice: %w", err)
	}
	return sent, time.Now(), nil
}

// slice returns the first n endpoints of the i-th service.
func slice(namespace string, i, n int) *discoveryv1.EndpointSlice {
	name, port := "http", int32(8080)
	e := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ServiceName(i),
			Labels: map[string]string{discoveryv1.LabelServiceName: ServiceName(i)}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
	for j := range n {
		e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d",
			128+4*(i>>12)+j%4, i&255, 16*(i>>8&15)+3+j)}})
	}
	return e
}

// CreateServices makes the services from to to-1 in a namespace, and returns when it started.
func CreateServices(ctx context.Context, kube kubernetes.Interface, namespace string, from, to int) (began time.Time,
	err error) {
	began = time.Now()
	return began, Parallel(ctx, to-from, func(ctx context.Context, i int) error {
		_, err := CreateService(ctx, kube, namespace, from+i)
		return err
	})
}

// ServiceObserver watches services get their load balancers.
type ServiceObserver struct {
	Whole *Tracker // services whose load balancer has had all backends
	Short *Tracker // services whose load balancer has had one backend less

	wire  *ovsdbwire.Client
	names map[string]Name // UUID of the load balancer -> service
}

// ObserveServices starts to watch all load balancers of the database at nbSocket.
func ObserveServices(nbSocket string) (*ServiceObserver, error) {
	o := &ServiceObserver{Whole: NewTracker("the load balancers"), Short: NewTracker("the changed load balancers"),
		names: map[string]Name{}}
	var err error
	if o.wire, err = ovsdbwire.Dial(nbSocket); err != nil {
		return nil, err
	}
	if err := o.wire.Monitor(database, "Load_Balancer", []string{"name", "vips"}, o.balancers); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	go func() {
		<-o.wire.Ended()
		for _, t := range []*Tracker{o.Whole, o.Short} {
			t.Fail(errors.New("watching load balancers: the connection to ovsdb-server ended"))
		}
	}()
	return o, nil
}

// Close stops watching.
func (o *ServiceObserver) Close() error { return o.wire.Close() }

// balancers handles new and changed load balancers. Those of services have names Service_<namespace>/<name>_<protocol>.
func (o *ServiceObserver) balancers(_ string, rows map[string]ovsdbwire.RowUpdate) {
	for uuid, u := range rows {
		raw := u.Content()
		if raw == nil {
			continue
		}
		var row struct {
			Name string
			VIPs []json.RawMessage
		}
		if err := json.Unmarshal(raw, &row); err != nil {
			o.Whole.Fail(fmt.Errorf("reading a load balancer: %w", err))
			return
		}
		if ns, name, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(row.Name, "Service_"), "_TCP"), "/"); ok {
			o.names[uuid] = Name{ns, name}
		}
		o.take(o.names[uuid], row.VIPs)
	}
}

// take reads VIPs in their wire form: ["map", [["10.96.0.1:80", "10.128.0.3:8080,10.128.0.4:8080"], ...]].
func (o *ServiceObserver) take(name Name, vips []json.RawMessage) {
	var pairs [][2]string
	if len(vips) != 2 || json.Unmarshal(vips[1], &pairs) != nil || len(pairs) != 1 {
		return
	}
	switch strings.Count(pairs[0][1], ":") {
	case Backends:
		o.Whole.See(name)
	case Backends - 1:
		o.Short.See(name)
	}
}
