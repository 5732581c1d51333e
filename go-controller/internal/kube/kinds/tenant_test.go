package kinds

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A namespace's tenant is what its annotations say. A bad value is reported, and keeps the namespace apart.
func TestTenantAnnotations(t *testing.T) {
	const ours, theirs = "k8s.ovn.org/tenant", "pod.network.openshift.io/multitenant.change-network"
	for _, c := range []struct {
		annotations map[string]string
		want        string
		bad         string // what the Problem quotes, "" for none
	}{
		{nil, "", ""},
		{map[string]string{ours: "blue"}, "blue", ""},
		{map[string]string{ours: "*"}, "*", ""},
		{map[string]string{ours: ""}, "shop", `annotation k8s.ovn.org/tenant: ""`},
		{map[string]string{ours: "Blue"}, "shop", `"Blue"`},
		{map[string]string{ours: "a.b"}, "shop", `"a.b"`},
		{map[string]string{ours: strings.Repeat("a", 64)}, "shop", "aaa"},
		{map[string]string{ours: "global"}, "global", ""},
		{map[string]string{theirs: "global"}, "*", ""},
		{map[string]string{theirs: "isolate"}, "shop", ""},
		{map[string]string{theirs: "join:bank"}, "bank", ""},
		{map[string]string{theirs: "join:*"}, "shop", `"join:*"`},
		{map[string]string{theirs: "join:"}, "shop", `"join:"`},
		{map[string]string{theirs: "*"}, "shop", `"*"`},
		{map[string]string{theirs: "bank"}, "shop", `"bank"`},
		{map[string]string{theirs: ""}, "shop", `change-network: ""`},
		{map[string]string{ours: "blue", theirs: "global"}, "blue", ""},
		{map[string]string{ours: "*", theirs: "isolate"}, "*", ""},
		{map[string]string{ours: "B", theirs: "global"}, "shop", `"B"`},
	} {
		n, problems := decodeNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "u",
			Annotations: c.annotations}})
		if n.Tenant != c.want || (len(problems) > 0) != (c.bad != "") {
			t.Errorf("%v: tenant %q, problems %v; want %q", c.annotations, n.Tenant, problems, c.want)
		}
		for _, p := range problems {
			if p.Reason != "InvalidTenant" || !strings.Contains(p.Message, c.bad) {
				t.Errorf("%v: %v, want one that quotes %s", c.annotations, p, c.bad)
			}
		}
	}
}
