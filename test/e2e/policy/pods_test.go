package policy

import (
	"encoding/json"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// inside is the network namespace of a ready pod, until the test ends. Sockets that are made in it stay in it.
func (b *bed) inside(t *testing.T, namespace, name, node string) machines.Namespace {
	t.Helper()
	n, err := b.Node(node)
	must(t, err)
	ns := machines.PodNamespace(t, n, namespace, name)
	t.Cleanup(func() { _ = ns.Close() })
	return ns
}

// granted is the addresses that a pod has been given, before it is there; none if it has none yet.
func granted(p *corev1.Pod) (ips []netip.Addr) {
	var networks map[string]struct {
		IPs []netip.Prefix `json:"ip_addresses"`
	}
	if json.Unmarshal([]byte(p.Annotations["k8s.ovn.org/pod-networks"]), &networks) != nil {
		return nil // the annotation is not there yet
	}
	for _, ip := range networks["default"].IPs {
		ips = append(ips, ip.Addr())
	}
	return ips
}

// makePolicy makes a policy in a namespace for the pods that a selector selects.
func (b *bed) makePolicy(t *testing.T, namespace, name string, spec networkingv1.NetworkPolicySpec) {
	t.Helper()
	_, err := b.client.NetworkingV1().NetworkPolicies(namespace).Create(t.Context(), &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	must(t, err)
}

func selects(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}
