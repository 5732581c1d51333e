package attacks

import (
	"context"
	"encoding/json"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Annotations of ovnkube (docs/reference/annotations.md).
const (
	podNetworks = "k8s.ovn.org/pod-networks"
	classic     = "ovn"
	subnets     = "k8s.ovn.org/node-subnets"
	joinAddrs   = "k8s.ovn.org/node-gateway-router-lrp-ifaddrs"
	gateway     = "k8s.ovn.org/l3-gateway-config"
)

// ofAgents are the annotations that an agent writes on its own Node.
func ofAgents() []string {
	return []string{"k8s.ovn.org/node-chassis-id", "k8s.ovn.org/node-mgmt-port-mac-addresses",
		"k8s.ovn.org/node-primary-ifaddr", "k8s.ovn.org/node-agent-ready", "k8s.ovn.org/node-physical-networks", gateway}
}

// attempt is a request. What it says begins with who asks.
type attempt struct {
	what string
	do   func(context.Context) error
}

// annotate patches annotations of a Node; nil removes one.
func annotate(who string, c kubernetes.Interface, node, key string, value any) attempt {
	return patchNode(who, "annotation "+key, c, node, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{key: value}},
	})
}

func patchNode(who, what string, c kubernetes.Interface, node string, body any, sub ...string) attempt {
	return attempt{fmt.Sprintf("%s changes %s of Node %s", who, what, node), func(ctx context.Context) error {
		_, err := c.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, marshal(body), metav1.PatchOptions{}, sub...)
		return err
	}}
}

func marshal(body any) []byte {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // a test's own literal
	}
	return raw
}

func meta(key string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{key: value}}
}

func spec(key string, value any) map[string]any {
	return map[string]any{"spec": map[string]any{key: value}}
}

func lease(who string, c kubernetes.Interface, namespace, name string) attempt {
	return attempt{fmt.Sprintf("%s makes Lease %s/%s", who, namespace, name), func(ctx context.Context) error {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := c.CoordinationV1().Leases(namespace).Create(ctx, l, metav1.CreateOptions{})
		return err
	}}
}

func patchLease(who string, c kubernetes.Interface, namespace, name string) attempt {
	return attempt{fmt.Sprintf("%s renews Lease %s/%s", who, namespace, name), func(ctx context.Context) error {
		_, err := c.CoordinationV1().Leases(namespace).Patch(ctx, name, types.MergePatchType,
			marshal(spec("holderIdentity", "a thief")), metav1.PatchOptions{})
		return err
	}}
}

// byAgents are what n1's agent must not do: with its certificate, and with tokens of its ServiceAccount.
func (b bed) byAgents() (all []attempt) {
	const agent, bound, unbound = "n1's agent", "n1's agent, by token,", "a token bound to no pod"
	c := b.agent
	for _, key := range ofAgents() {
		all = append(all, annotate(agent, c, "n2", key, "x"), annotate(agent, c, "n2", key, nil))
	}
	return append(all,
		annotate(agent, c, "n1", subnets, `{"default":["10.244.0.0/16"]}`),
		annotate(agent, c, "n1", subnets, nil),
		annotate(agent, c, "n1", joinAddrs, "x"),
		annotate(agent, c, "n1", "example.com/other", "x"),
		annotate(agent, c, "n1", "example.com/empty", ""),
		annotate(agent, c, "n1", "volumes.kubernetes.io/controller-managed-attach-detach", nil),
		annotate(bound, b.bound, "n2", gateway, "x"),
		annotate(bound, b.bound, "n1", subnets, "x"),
		annotate(unbound, b.unbound, "n1", gateway, "x"),
		lease(bound, b.bound, "kube-node-lease", "ovn-gateway.n2"),
		lease(unbound, b.unbound, "kube-node-lease", "ovn-gateway."),
		patchNode(agent, "a label", c, "n1", meta("labels", map[string]any{"node-role.kubernetes.io/x": ""})),
		patchNode(agent, "a label", c, "n2", meta("labels", map[string]any{"kubernetes.io/hostname": "n1"})),
		patchNode(agent, "the finalizers", c, "n1", meta("finalizers", []string{"example.com/x"})),
		patchNode(agent, "the owner", c, "n1", meta("ownerReferences", []any{map[string]any{
			"apiVersion": "v1", "kind": "Node", "name": "n2", "uid": "0"}})),
		patchNode(agent, "the taints", c, "n1", spec("taints", []any{map[string]any{"key": "example.com/x",
			"effect": "NoSchedule"}})),
		patchNode(agent, "the taints (none is left)", c, "n1", spec("taints", nil)),
		patchNode(bound, "the taints (none is left)", b.bound, "n1", spec("taints", nil)),
		patchNode(agent, "unschedulable", c, "n1", spec("unschedulable", true)),
		patchNode(agent, "unschedulable", c, "n2", spec("unschedulable", true)),
		patchNode(agent, "the status", c, "n1", map[string]any{"status": map[string]any{"phase": "x"}}, "status"),
		lease(agent, c, "kube-node-lease", "ovn-gateway.n2"),
		lease(agent, c, "kube-node-lease", "x"),
		lease(agent, c, "kube-system", "northbound-master"),
		lease(agent, c, tenant, "ovn-gateway.n1"),
		patchLease(agent, c, "kube-node-lease", "n1"),
		patchLease(agent, c, "kube-node-lease", "n2"),
		patchLease(agent, c, "kube-system", "northbound-master"))
}

// byAgentsElsewhere are requests about objects that are none of an agent's business.
func (b bed) byAgentsElsewhere() []attempt {
	c, core := b.agent, b.agent.CoreV1()
	by := func(what string, do func(context.Context) error) attempt { return attempt{"n1's agent " + what, do} }
	return []attempt{
		by("lists Secrets", func(ctx context.Context) error {
			_, err := core.Secrets("").List(ctx, metav1.ListOptions{})
			return err
		}),
		by("lists ConfigMaps", func(ctx context.Context) error {
			_, err := core.ConfigMaps("kube-system").List(ctx, metav1.ListOptions{})
			return err
		}),
		by("makes a Node", func(ctx context.Context) error {
			_, err := core.Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n9"}}, metav1.CreateOptions{})
			return err
		}),
		by("deletes Node n2", func(ctx context.Context) error {
			return core.Nodes().Delete(ctx, "n2",
				metav1.DeleteOptions{})
		}),
		by("makes a Pod", func(ctx context.Context) error {
			_, err := core.Pods(tenant).Create(ctx, pod("by-agent"), metav1.CreateOptions{})
			return err
		}),
		by("annotates a Pod", func(ctx context.Context) error {
			return patchPod(ctx, c, "on-n1", podNetworks, "x",
				"status")
		}),
		by("deletes a Pod", func(ctx context.Context) error {
			return core.Pods(tenant).Delete(ctx, "on-n2", metav1.DeleteOptions{})
		}),
		by("changes the Service kubernetes", func(ctx context.Context) error {
			_, err := core.Services("default").Patch(ctx, "kubernetes", types.MergePatchType,
				marshal(spec("externalIPs", []string{"192.0.2.1"})), metav1.PatchOptions{})
			return err
		}),
		by("makes an EndpointSlice", func(ctx context.Context) error {
			s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "x"}, AddressType: discoveryv1.AddressTypeIPv4}
			_, err := c.DiscoveryV1().EndpointSlices(tenant).Create(ctx, s, metav1.CreateOptions{})
			return err
		}),
		by("makes an Event", func(ctx context.Context) error {
			_, err := core.Events(tenant).Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
				metav1.CreateOptions{})
			return err
		}),
		by("asks for the master's token", func(ctx context.Context) error {
			_, err := core.ServiceAccounts(system).CreateToken(ctx, "ovnkube-master", &authenticationv1.TokenRequest{},
				metav1.CreateOptions{})
			return err
		}),
		by("asks for a certificate", func(ctx context.Context) error {
			_, err := c.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
			return err
		}),
		by("removes the admission policies", func(ctx context.Context) error {
			return c.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, "ovnkube-annotations",
				metav1.DeleteOptions{})
		}),
	}
}

// byKubelets are what n1's kubelet must not do with annotations of ovnkube.
func (b bed) byKubelets() (all []attempt) {
	const kubelet = "n1's kubelet"
	c := b.kubelet
	onPod := func(name, key string) attempt {
		return attempt{fmt.Sprintf("%s changes annotation %s of Pod %s", kubelet, key, name),
			func(ctx context.Context) error {
				return patchPod(ctx, c, name, key, "x", "status")
			}}
	}
	return []attempt{
		annotate(kubelet, c, "n1", subnets, `{"default":["10.244.0.0/16"]}`), annotate(kubelet, c, "n1", joinAddrs, "x"),
		annotate(kubelet, c, "n2", subnets, "x"), annotate(kubelet, c, "n2", gateway, "x"),
		onPod("on-n1", podNetworks), onPod("on-n1", classic), onPod("on-n2", podNetworks),
		lease(kubelet, c, "kube-node-lease", "ovn-gateway.n2"),
		patchNode(kubelet, "the taints (none is left)", c, "n1", spec("taints", nil)),
		patchNode(kubelet, "annotation "+subnets+" (by the status)", c, "n1",
			meta("annotations", map[string]any{subnets: "x"}), "status"),
		{kubelet + " makes a mirror pod with a place in the network", func(ctx context.Context) error {
			p := pod("mirror-n1")
			p.Spec.NodeName = "n1"
			p.Annotations[corev1.MirrorPodAnnotationKey], p.Annotations[podNetworks] = "x", "x"
			_, err := c.CoreV1().Pods(tenant).Create(ctx, p, metav1.CreateOptions{})
			return err
		}},
	}
}
