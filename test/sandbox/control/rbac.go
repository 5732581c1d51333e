package control

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Identities of the product's parts.
const (
	masterUser = "ovnkube-master"
	agentGroup = "ovnkube-nodes"
)

func agentUser(node string) string { return "ovnkube-node:" + node }

func rule(group string, resources, verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// roles are the minimal rights of each part.
func roles() map[string][]rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	events := rule("", []string{"events"}, []string{"create", "patch"})
	return map[string][]rbacv1.PolicyRule{
		masterUser: {
			rule("", []string{"nodes", "pods", "namespaces", "services"}, read),
			rule("discovery.k8s.io", []string{"endpointslices"}, read),
			rule("networking.k8s.io", []string{"servicecidrs"}, read),
			rule("", []string{"nodes", "pods/status"}, []string{"patch"}), // annotations
			events,
			rule("events.k8s.io", []string{"events"}, []string{"create", "patch"}),
			rule("coordination.k8s.io", []string{"leases"}, []string{"get", "list", "create", "update"}),
		},
		agentGroup: {
			rule("", []string{"nodes", "pods", "services"}, read),
			rule("networking.k8s.io", []string{"servicecidrs"}, read),
			// for services of externalTrafficPolicy Local
			rule("discovery.k8s.io", []string{"endpointslices"}, read),
			rule("", []string{"nodes"}, []string{"patch"}),                               // annotations of its own
			rule("coordination.k8s.io", []string{"leases"}, []string{"create", "patch"}), // the lease of a gateway
			events,
		},
	}
}

// grant gives the product's identities their rights.
func grant(ctx context.Context, client kubernetes.Interface) error {
	subjects := map[string]rbacv1.Subject{
		masterUser: {Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: masterUser},
		agentGroup: {Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: agentGroup},
	}
	for name, rules := range roles() {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{subjects[name]},
		}
		if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making cluster role %s: %w", name, err)
		}
		if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("binding cluster role %s: %w", name, err)
		}
	}
	return nil
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
