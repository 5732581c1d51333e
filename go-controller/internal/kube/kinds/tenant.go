package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// ReasonTenant is the reason of a Problem with a namespace's annotation about its tenant.
const ReasonTenant = "InvalidTenant"

// decodeTenant is the tenant that a namespace's annotations name, "" when none does. With a bad value the namespace is
// a tenant of its own.
func decodeTenant(f *findings, namespace string, annotations map[string]string) string {
	key, raw := annotation.NamespaceTenant, annotations[annotation.NamespaceTenant]
	_, ours := annotations[key]
	_, theirs := annotations[annotation.NamespaceChangeNetwork]
	tenant, want := raw, `the name of a tenant (a DNS label such as "shop"), or "*" for a global namespace`
	switch {
	case !ours && !theirs:
		return ""
	case !ours:
		key, raw = annotation.NamespaceChangeNetwork, annotations[annotation.NamespaceChangeNetwork]
		tenant, want = changedNetwork(namespace, raw), `"global", "isolate" or "join:NAMESPACE"`
	}
	if tenant == cluster.GlobalTenant && raw != "join:*" || len(validation.IsDNS1123Label(tenant)) == 0 {
		return tenant
	}
	f.bad(ReasonTenant, "annotation %s: %.64q, want %s: the namespace is a tenant of its own", key, raw, want)
	return namespace
}

// changedNetwork is the tenant that a value of OpenShift SDN's annotation stands for; "" for a value that it has not.
func changedNetwork(namespace, value string) string {
	other, join := strings.CutPrefix(value, "join:")
	switch {
	case join:
		return other
	case value == "global":
		return cluster.GlobalTenant
	case value == "isolate":
		return namespace
	}
	return ""
}
