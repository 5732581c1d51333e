package database

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/northbound-net/northbound/go-controller/internal/dbserver"
)

// NodesAnnotation is an annotation of the Service of the databases. It has the names of the nodes that shall run a
// server each, with commas.
const NodesAnnotation = "northbound.io/database-nodes"

// Keys of the ConfigMap of a database's cluster.
const (
	clusterKey    = "cluster"    // its UUID
	generationKey = "generation" // when it was created, in milliseconds
	serverPrefix  = "server."    // and the name of a node: the UUID of its server
)

// RecordName is the name of the ConfigMap with what is recorded of a database's cluster.
func RecordName(d dbserver.Database) string { return "ovn-" + d.Short + "-cluster" }

// Cluster is what Kubernetes knows of the databases' servers.
type Cluster struct {
	Kube    kubernetes.Interface
	Service Service
}

var _ dbserver.Cluster = Cluster{}

// Nodes reads the annotation of the Service. A Service without it is an error: nobody must take it for one that names
// no node.
func (c Cluster) Nodes(ctx context.Context) ([]string, error) {
	s, err := c.Kube.CoreV1().Services(c.Service.Namespace).Get(ctx, c.Service.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Service %s: %w", c.Service, err)
	}
	text, ok := s.Annotations[NodesAnnotation]
	if !ok {
		return nil, fmt.Errorf("reading Service %s: it has no annotation %s", c.Service, NodesAnnotation)
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' }), nil
}

// Addresses lists the addresses of the Service's pods, by node. The pods are in the network of their nodes.
func (c Cluster) Addresses(ctx context.Context) (map[string][]netip.Addr, error) {
	found, err := c.Service.slices(ctx, c.Kube)
	if err != nil {
		return nil, err
	}
	out := map[string][]netip.Addr{}
	for _, slice := range found {
		for _, e := range slice.Endpoints {
			if e.NodeName == nil {
				continue
			}
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil { // a slice of host names has none
					out[*e.NodeName] = append(out[*e.NodeName], a)
				}
			}
		}
	}
	return out, nil
}

// slices lists the EndpointSlices of a Service.
func (s Service) slices(ctx context.Context, kube kubernetes.Interface) ([]discoveryv1.EndpointSlice, error) {
	found, err := kube.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the endpoints of Service %s: %w", s, err)
	}
	return found.Items, nil
}

// Registry is a ConfigMap.
func (c Cluster) Registry(d dbserver.Database) dbserver.Registry {
	return registry{c.Kube, c.Service.Namespace, RecordName(d)}
}

type registry struct {
	kube            kubernetes.Interface
	namespace, name string
}

// Read reads the ConfigMap.
func (r registry) Read(ctx context.Context) (dbserver.Record, error) {
	o, err := r.kube.CoreV1().ConfigMaps(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return dbserver.Record{}, nil
	}
	if err != nil {
		return dbserver.Record{}, fmt.Errorf("reading ConfigMap %s/%s: %w", r.namespace, r.name, err)
	}
	return decode(o.Data), nil
}

// Update changes the ConfigMap, and makes it if it is missing.
func (r registry) Update(ctx context.Context, change func(*dbserver.Record) error) error {
	objects := r.kube.CoreV1().ConfigMaps(r.namespace)
	raced := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err := retry.OnError(retry.DefaultRetry, raced, func() error {
		o, err := objects.Get(ctx, r.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			var v dbserver.Record
			if err := change(&v); err != nil {
				return err
			}
			_, err = objects.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.name}, Data: encode(v)},
				metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		v := decode(o.Data)
		if err := change(&v); err != nil {
			return err
		}
		o.Data = encode(v)
		_, err = objects.Update(ctx, o, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", r.namespace, r.name, err)
	}
	return nil
}

func decode(data map[string]string) dbserver.Record {
	r := dbserver.Record{Cluster: data[clusterKey], Servers: map[string]string{}}
	if n, err := strconv.ParseInt(data[generationKey], 10, 64); err == nil {
		r.Generation = n
	}
	for k, v := range data {
		if node, ok := strings.CutPrefix(k, serverPrefix); ok {
			r.Servers[node] = v
		}
	}
	return r
}

func encode(r dbserver.Record) map[string]string {
	data := map[string]string{clusterKey: r.Cluster, generationKey: strconv.FormatInt(r.Generation, 10)}
	for node, id := range r.Servers {
		data[serverPrefix+node] = id
	}
	return data
}

// CountLabel is a label of the Service of the databases: how many servers there shall be. Kubernetes copies it to the
// Service's EndpointSlices.
const CountLabel = "northbound.io/database-servers"

// complete tells whether as many nodes as there shall be have an endpoint.
func complete(found []discoveryv1.EndpointSlice) bool {
	nodes := map[string]bool{}
	want := 0
	for _, slice := range found {
		if n, err := strconv.Atoi(slice.Labels[CountLabel]); err == nil {
			want = max(want, n)
		}
		for _, e := range slice.Endpoints {
			if e.NodeName != nil {
				nodes[*e.NodeName] = true
			}
		}
	}
	return len(nodes) >= want
}
