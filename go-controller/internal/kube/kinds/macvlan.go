package kinds

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// MacvlanOf is the node's interface on which a pod asks for a macvlan: "true" for the one with the default route, ""
// for a pod that asks for none.
func MacvlanOf(p *corev1.Pod) string {
	if value := p.Annotations[annotation.PodMacvlan]; value != "false" && !p.Spec.HostNetwork {
		return value
	}
	return ""
}

// RefusesMacvlan is why a pod does not get the macvlan that it asks for; "" if it may have it. A macvlan is in the
// node's own network, past all policies.
func RefusesMacvlan(p *corev1.Pod) string {
	switch value := MacvlanOf(p); {
	case value == "":
		return ""
	case !names.IsInterface(value):
		return fmt.Sprintf(`%.64q: want "true", or the name of an interface of the node, such as "eth1"`, value)
	case !privileged(p):
		return fmt.Sprintf("%q: only a pod with a privileged container gets a macvlan: want securityContext.privileged: "+
			"true in a container, or no such annotation", value)
	}
	return ""
}

// privileged is true when any container of the pod is.
func privileged(p *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for _, c := range list {
			if c.SecurityContext != nil && deref(c.SecurityContext.Privileged) {
				return true
			}
		}
	}
	return false
}
