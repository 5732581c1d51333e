package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

func userDefinedNetworks() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "userdefinednetworks"}
}

// NetworkName is the name of the network of each tenant's namespace.
const NetworkName = "own"

// NetworkKinds is the path, in the repository, of the manifest that declares UserDefinedNetworks.
const NetworkKinds = "dist/kubernetes/userdefinednetworks.yaml"

// networkLabel is on the namespaces whose pods live in a network of their own.
const networkLabel = "k8s.ovn.org/primary-user-defined-network"

// KnowNetworks has an API server know UserDefinedNetworks. file is the manifest of their CustomResourceDefinitions.
func KnowNetworks(ctx context.Context, objects dynamic.Interface, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("reading CustomResourceDefinitions: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	for reader := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		var crd unstructured.Unstructured
		err := reader.Decode(&crd)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if _, err := objects.Resource(definitions()).Create(ctx, &crd, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making CustomResourceDefinition %s: %w", crd.GetName(), err)
		}
	}
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := objects.Resource(userDefinedNetworks()).List(ctx, metav1.ListOptions{})
		return err == nil, serious(err)
	})
	if err != nil {
		return fmt.Errorf("waiting until the API server knows UserDefinedNetworks: %w", err)
	}
	return nil
}

// serious is an error, but for that of an API server that does not serve a kind yet.
func serious(err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// A Topology of a network, with the ranges that all tenants have.
type Topology string

// The topologies.
const (
	Layer2 Topology = "Layer2"
	Layer3 Topology = "Layer3"
)

// spec is that of a UserDefinedNetwork. All tenants have the same ranges.
func (t Topology) spec() map[string]any {
	if t == Layer2 {
		return map[string]any{"topology": "Layer2", "layer2": map[string]any{"role": "Primary",
			"subnets": []any{"10.77.0.0/22", "fd77::/64"}}}
	}
	return map[string]any{"topology": "Layer3", "layer3": map[string]any{"role": "Primary", "subnets": []any{
		map[string]any{"cidr": "10.77.0.0/22", "hostSubnet": int64(26)},
		map[string]any{"cidr": "fd77::/56", "hostSubnet": int64(64)}}}}
}

// Tenant makes a namespace whose pods live in a network of their own, and the network.
func Tenant(ctx context.Context, kube kubernetes.Interface, objects dynamic.Interface, namespace string,
	t Topology) error {
	if err := TenantNamespace(ctx, kube, namespace); err != nil {
		return err
	}
	return Network(ctx, objects, namespace, t)
}

// TenantNamespace makes a namespace whose pods live in a network of their own.
func TenantNamespace(ctx context.Context, kube kubernetes.Interface, namespace string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{networkLabel: ""}}}
	return makeNamespace(ctx, kube, ns)
}

// Network makes the network of a tenant's namespace.
func Network(ctx context.Context, objects dynamic.Interface, namespace string, t Topology) error {
	_, err := objects.Resource(userDefinedNetworks()).Namespace(namespace).Create(ctx, &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "k8s.ovn.org/v1", "kind": "UserDefinedNetwork",
			"metadata": map[string]any{"name": NetworkName}, "spec": t.spec()}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making the network of namespace %s: %w", namespace, err)
	}
	return nil
}

// DeleteNetwork deletes the network of a tenant's namespace. It is no error if there is none.
func DeleteNetwork(ctx context.Context, objects dynamic.Interface, namespace string) error {
	err := objects.Resource(userDefinedNetworks()).Namespace(namespace).Delete(ctx, NetworkName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the network of namespace %s: %w", namespace, err)
	}
	return nil
}

// HasNetwork tells whether a tenant's namespace has its network, also while that is being deleted.
func HasNetwork(ctx context.Context, objects dynamic.Interface, namespace string) (bool, error) {
	_, err := objects.Resource(userDefinedNetworks()).Namespace(namespace).Get(ctx, NetworkName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for the network of namespace %s: %w", namespace, err)
	}
	return true, nil
}
