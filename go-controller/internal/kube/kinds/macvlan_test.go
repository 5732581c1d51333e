package kinds

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
)

// Only a pod with a privileged container gets a macvlan, and only on what can be an interface.
func TestRefusesMacvlan(t *testing.T) {
	yes, no := true, false
	privileged := []corev1.Container{{}, {SecurityContext: &corev1.SecurityContext{Privileged: &yes}}}
	for _, test := range []struct {
		value, on, why string
		spec           corev1.PodSpec
	}{
		{"", "", "", corev1.PodSpec{}},
		{"false", "", "", corev1.PodSpec{}},
		{"true", "true", "", corev1.PodSpec{Containers: privileged}},
		{"eth1", "eth1", "", corev1.PodSpec{InitContainers: privileged}},
		{"true", "true", "only a pod with a privileged container", corev1.PodSpec{Containers: []corev1.Container{{},
			{SecurityContext: &corev1.SecurityContext{Privileged: &no}}, {SecurityContext: &corev1.SecurityContext{}}}}},
		{"true", "", "", corev1.PodSpec{HostNetwork: true}}, // it has all interfaces of the node
		{"a/b", "a/b", "want \"true\", or the name of an interface", corev1.PodSpec{Containers: privileged}},
		{strings.Repeat("x", 16), strings.Repeat("x", 16), "want \"true\"", corev1.PodSpec{Containers: privileged}},
	} {
		p := &corev1.Pod{Spec: test.spec}
		p.Annotations = map[string]string{annotation.PodMacvlan: test.value}
		if on, why := MacvlanOf(p), RefusesMacvlan(p); on != test.on || (why == "") != (test.why == "") ||
			!strings.Contains(why, test.why) {
			t.Errorf("%q of %+v: on %q, refused: %q; want %q, %q", test.value, test.spec, on, why, test.on, test.why)
		}
		_, problems := decodePod(p)
		if (len(problems) == 1) != (test.why != "") {
			t.Errorf("%q: %v", test.value, problems)
		}
	}
}
