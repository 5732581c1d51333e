package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// Workers is the number of concurrent requests.
const Workers = 32

// Parallel calls do for 0 to n-1, Workers at a time. The first error stops it.
func Parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(Workers, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// NodeName is the name of the i-th node.
func NodeName(i int) string { return fmt.Sprintf("node-%03d", i) }

// ChassisID is the name of the i-th node's chassis, as its Node says. It is a UUID, and that of the chassis' row, too.
func ChassisID(i int) string { return fmt.Sprintf("c0ffee00-0000-4000-8000-%012d", i) }

// Nodes makes n Nodes with the chassis annotation of a node agent.
func Nodes(ctx context.Context, kube kubernetes.Interface, n int) error {
	return Parallel(ctx, n, func(ctx context.Context, i int) error { return Node(ctx, kube, i) })
}

// Node makes the i-th Node with the chassis annotation of a node agent.
func Node(ctx context.Context, kube kubernetes.Interface, i int) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        NodeName(i),
		Annotations: map[string]string{"k8s.ovn.org/node-chassis-id": ChassisID(i)},
	}}
	if _, err := kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a node: %w", err)
	}
	return nil
}

// WaitNodes waits until n Nodes have their subnets.
func WaitNodes(ctx context.Context, kube kubernetes.Interface, n int) error {
	have := 0
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("listing nodes: %w", err)
		}
		have = 0
		for _, node := range list.Items {
			if node.Annotations["k8s.ovn.org/node-subnets"] != "" {
				have++
			}
		}
		return have >= n, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the subnets of %d nodes: %d so far: %w", n, have, err)
	}
	return nil
}

// Namespace makes a namespace with its default service account, without which some API servers refuse pods.
func Namespace(ctx context.Context, kube kubernetes.Interface, name string) error {
	return makeNamespace(ctx, kube, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func makeNamespace(ctx context.Context, kube kubernetes.Interface, ns *corev1.Namespace) error {
	name := ns.Name
	if _, err := kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making namespace %s: %w", name, err)
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: name}}
	if _, err := kube.CoreV1().ServiceAccounts(name).Create(ctx, sa, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the service account of namespace %s: %w", name, err)
	}
	return nil
}

// PodName is the name of the i-th pod of a namespace.
func PodName(i int) string { return fmt.Sprintf("web-6f8d7c9b54-%05d", i) }

// Pod returns a pod like a Deployment's, bound to a node.
func Pod(namespace string, i, nodes int) *corev1.Pod {
	no := false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: PodName(i), Namespace: namespace, Labels: map[string]string{"app": "web",
			"pod-template-hash": "6f8d7c9b54"}},
		Spec: corev1.PodSpec{
			NodeName:                     NodeName(i % nodes),
			AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{
				Name: "web", Image: "web:1.0",
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				Env:   []corev1.EnvVar{{Name: "MODE", Value: "production"}},
			}},
		},
	}
}

// CreatePod makes the i-th pod of a namespace and returns when the request was sent and when it was answered.
func CreatePod(ctx context.Context, kube kubernetes.Interface, namespace string, i, nodes int) (sent,
	answered time.Time, err error) {
	sent = time.Now()
	if _, err := kube.CoreV1().Pods(namespace).Create(ctx, Pod(namespace, i, nodes), metav1.CreateOptions{}); err != nil {
		return sent, sent, fmt.Errorf("making a pod: %w", err)
	}
	return sent, time.Now(), nil
}

// CreatePods makes n pods in a namespace, on all nodes in turn, and returns when it started.
func CreatePods(ctx context.Context, kube kubernetes.Interface, namespace string, n, nodes int) (began time.Time,
	err error) {
	began = time.Now()
	return began, Parallel(ctx, n, func(ctx context.Context, i int) error {
		_, _, err := CreatePod(ctx, kube, namespace, i, nodes)
		return err
	})
}
