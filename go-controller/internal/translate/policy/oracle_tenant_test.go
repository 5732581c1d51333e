package policy_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// This file states what tenants promise (docs/features/tenants.md).

const (
	ourTenant   = "k8s.ovn.org/tenant"
	theirTenant = "pod.network.openshift.io/multitenant.change-network"
)

// tenantOf is the tenant of a namespace, "*" for a global one.
func (k *kube) tenantOf(namespace string) string {
	i := slices.IndexFunc(k.Namespaces, func(n *corev1.Namespace) bool { return n.Name == namespace })
	annotations := k.Namespaces[i].Annotations
	if tenant, ok := annotations[ourTenant]; ok {
		return tenant
	}
	switch theirs := annotations[theirTenant]; {
	case theirs == "global":
		return "*"
	case strings.HasPrefix(theirs, "join:"):
		return theirs[len("join:"):]
	}
	return namespace
}

// tenantLets tells whether a pod's tenant lets in what the other end sends: pods of the same tenant and of global
// namespaces, nodes, and what is outside the cluster. Everybody reaches global namespaces.
func (k *kube) tenantLets(server, client end, c connection) bool {
	if !k.Multitenant || c.Itself() || client.Pod == nil && client.Node != "" {
		return true
	}
	own := k.tenantOf(server.Pod.Namespace)
	if client.Pod != nil {
		its := k.tenantOf(client.Pod.Namespace)
		return own == "*" || its == "*" || own == its
	}
	forPods := slices.ContainsFunc(k.Config().Subnets, func(s config.ClusterSubnet) bool {
		return s.CIDR.Contains(client.Addr)
	})
	return own == "*" || !forPods
}

// tenantsApart is why tenants deny a connection in a direction; apart is false when they don't.
func (k *kube) tenantsApart(e end, t networkingv1.PolicyType, other end, c connection) (reason string, apart bool) {
	if e.Pod == nil || t != networkingv1.PolicyTypeIngress || k.tenantLets(e, other, c) {
		return "", false
	}
	own := k.tenantOf(e.Pod.Namespace)
	if other.Pod == nil {
		return fmt.Sprintf("tenant %s does not let in addresses of pods that no pod of it has", own), true
	}
	return fmt.Sprintf("tenant %s does not let in tenant %s", own, k.tenantOf(other.Pod.Namespace)), true
}
