package policy_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// This file states what tenants promise (docs/features/tenants.md), and makes random ones.

const (
	ourTenant   = "k8s.ovn.org/tenant"
	theirTenant = "pod.network.openshift.io/multitenant.change-network"
)

// tenantOf is the tenant of a namespace, "*" for a global one.
func (k *kube) tenantOf(namespace string) string {
	i := slices.IndexFunc(k.namespaces, func(n *corev1.Namespace) bool { return n.Name == namespace })
	annotations := k.namespaces[i].Annotations
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
	if !k.multitenant || c.itself() || client.pod == nil && client.node != "" {
		return true
	}
	own := k.tenantOf(server.pod.Namespace)
	if client.pod != nil {
		its := k.tenantOf(client.pod.Namespace)
		return own == "*" || its == "*" || own == its
	}
	forPods := slices.ContainsFunc(k.config().Subnets, func(s config.ClusterSubnet) bool {
		return s.CIDR.Contains(client.addr)
	})
	return own == "*" || !forPods
}

// tenantsApart is why tenants deny a connection in a direction; apart is false when they don't.
func (k *kube) tenantsApart(e end, t networkingv1.PolicyType, other end, c connection) (reason string, apart bool) {
	if e.pod == nil || t != networkingv1.PolicyTypeIngress || k.tenantLets(e, other, c) {
		return "", false
	}
	own := k.tenantOf(e.pod.Namespace)
	if other.pod == nil {
		return fmt.Sprintf("tenant %s does not let in addresses of pods that no pod of it has", own), true
	}
	return fmt.Sprintf("tenant %s does not let in tenant %s", own, k.tenantOf(other.pod.Namespace)), true
}

// tenants makes the namespaces of some clusters tenants.
func (d dice) tenants(k *kube) {
	if k.multitenant = d.chance(30); !k.multitenant && !d.chance(20) { // without tenants, annotations say nothing
		return
	}
	for _, n := range k.namespaces {
		n.Annotations = pick(d, nil, nil, map[string]string{ourTenant: pick(d, "*", "x", "blue")},
			map[string]string{theirTenant: pick(d, "global", "isolate", "join:y")},
			map[string]string{ourTenant: "blue", theirTenant: "global"})
	}
}
