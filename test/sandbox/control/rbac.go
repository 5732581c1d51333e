package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// Identities of the product's parts, as dist/kubernetes/roles.yaml knows them.
const (
	masterUser = "ovnkube-master"
	agentGroup = "ovnkube-nodes"
)

func agentUser(node string) string { return "ovnkube-node:" + node }

// grant applies the product's roles and admission policies. The API server enforces the policies a second later.
func (c *Control) grant(ctx context.Context) error {
	conf, err := c.RESTConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(conf)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	for _, name := range []string{"roles.yaml", "admission.yaml"} {
		if err := applyFile(ctx, client, filepath.Join(c.Spec.Bin, "manifests", name)); err != nil {
			return fmt.Errorf("applying %s: %w", name, err)
		}
	}
	return nil
}

// applyFile creates the objects of a manifest that are not there yet.
func applyFile(ctx context.Context, client dynamic.Interface, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	documents := yaml.NewYAMLOrJSONDecoder(f, 4096)
	for {
		var object unstructured.Unstructured
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a document: %w", err)
		}
		if object.Object == nil {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		_, err := client.Resource(resource).Namespace(object.GetNamespace()).Create(ctx, &object, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

// WaitDefaults waits for the objects that Kubernetes itself creates: the kubernetes service, and the default service
// account, without which no pod can be created in the default namespace.
func (c *Control) WaitDefaults(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	return c.Until(ctx, "the kubernetes service and the default service account are there",
		func(ctx context.Context) bool {
			core := client.CoreV1()
			_, noService := core.Services(corev1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
			_, noAccount := core.ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
			return noService == nil && noAccount == nil
		}, APIServer)
}
