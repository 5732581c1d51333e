package attacks

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// makeTenant makes the namespaces. In the tenant's, the author may do all with pods but what their subresources allow,
// and all with Deployments and Services. The binder may bind pods to nodes, as a scheduler does.
func (b bed) makeTenant(t *testing.T) {
	t.Helper()
	for _, name := range []string{tenant, system} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name == system && b.RunsChart() {
			continue
		}
		_, err := b.admin.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
		must(t, err)
	}
	b.grant(t, "author", rbacv1.PolicyRule{APIGroups: []string{"", "apps"},
		Resources: []string{"pods", "services", "deployments"}, Verbs: []string{"*"}})
	b.grant(t, "binder", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/binding", "bindings"},
		Verbs: []string{"create"}})
	if b.RunsChart() {
		return // it has the agents' ServiceAccount
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "ovnkube-node"}}
	_, err := b.admin.CoreV1().ServiceAccounts(system).Create(t.Context(), account, metav1.CreateOptions{})
	must(t, err)
}

// grant gives a user a right in the tenant's namespace.
func (b bed) grant(t *testing.T, user string, right rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: user}
	_, err := b.admin.RbacV1().Roles(tenant).Create(t.Context(),
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{right}}, metav1.CreateOptions{})
	must(t, err)
	_, err = b.admin.RbacV1().RoleBindings(tenant).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// makePods makes a pod of the tenant on each node, and one whose place no scheduler chooses. The agent's pod is only
// the object that its token is bound to.
func (b bed) makePods(t *testing.T) {
	t.Helper()
	for name, node := range map[string]string{"on-n1": "n1", "on-n2": "n2", "unbound": ""} {
		p := pod(name)
		p.Spec.NodeName = node
		if node == "" {
			p.Spec.SchedulerName = "nobody"
		}
		_, err := b.admin.CoreV1().Pods(tenant).Create(t.Context(), p, metav1.CreateOptions{})
		must(t, err)
	}
	p := pod("agent")
	p.Namespace, p.Spec.NodeName, p.Spec.ServiceAccountName = system, "n1", "ovnkube-node"
	_, err := b.admin.CoreV1().Pods(system).Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
	for _, name := range []string{"n1", "n2", "ovn-gateway.n1"} {
		machines.Eventually(t, "there is a Lease "+name, func(ctx context.Context) string {
			if _, err := b.admin.CoordinationV1().Leases("kube-node-lease").Get(ctx, name, metav1.GetOptions{}); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	for _, name := range []string{"on-n1", "on-n2"} {
		machines.Eventually(t, "pod "+name+" has its annotations", func(ctx context.Context) string {
			p, err := b.admin.CoreV1().Pods(tenant).Get(ctx, name, metav1.GetOptions{})
			if err != nil || p.Annotations[podNetworks] == "" || p.Annotations[classic] == "" {
				return "none yet"
			}
			return ""
		})
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64), Containers: []corev1.Container{{
			Name: "echo", Image: "localhost/echo:1", ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"8080"},
		}}},
	}
}

// account is a client with a token of the agent's ServiceAccount, bound to the agent's pod if that is wanted.
func (b bed) account(t *testing.T, bound bool) kubernetes.Interface {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if bound {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "agent"}
	}
	made, err := b.admin.CoreV1().ServiceAccounts(system).CreateToken(t.Context(), "ovnkube-node", request,
		metav1.CreateOptions{})
	must(t, err)
	conf, err := b.Control.RESTConfig()
	must(t, err)
	conf.CertData, conf.CertFile, conf.KeyData, conf.KeyFile = nil, "", nil, ""
	conf.BearerToken = made.Status.Token
	return clientOf(t, conf)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refusal says who refused a request, and why; "" if nobody did.
func refusal(err error) string {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return err.Error()
	}
	return ""
}
