package cleanup_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/cleanup"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

const own = "ovn-kubernetes"

func named(namespace, name string, annotations ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"other": "stays"}}
	for _, a := range annotations {
		m.Annotations["k8s.ovn.org/"+a] = "x"
	}
	return m
}

func masterLease(renewed time.Time) *coordinationv1.Lease {
	holder, seconds, at := "master-1", int32(15), metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{ObjectMeta: named("kube-system", "northbound-master"), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &at}}
}

func request(name, signer string) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: named("", name),
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: signer}}
}

// conditions are those of a Node, one of them with this reason.
func conditions(reason string) corev1.NodeStatus {
	return corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady},
		{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: reason}}}
}

// objects are those of a cluster, of each kind some of Northbound, or with its annotations, and some without.
func objects(renewed time.Time) []runtime.Object {
	gateway := named("kube-node-lease", "ovn-gateway.n1")
	classic := named("shop", "classic")
	classic.Annotations["ovn"] = "of another program"
	gateway.Labels = map[string]string{"k8s.ovn.org/lease": "gateway"}
	return []runtime.Object{
		masterLease(renewed), &coordinationv1.Lease{ObjectMeta: gateway},
		&coordinationv1.Lease{ObjectMeta: named("kube-node-lease", "n1")},
		&corev1.Node{ObjectMeta: named("", "n1", "node-subnets", "node-chassis-id", "node-mgmt-port-mac-addresses",
			"node-primary-ifaddr", "node-agent-ready", "node-physical-networks", "l3-gateway-config",
			"node-gateway-router-lrp-ifaddrs"),
			Status: conditions("NorthboundIsReady")},
		&corev1.Node{ObjectMeta: named("", "n2"), Status: conditions("RouteCreated")},
		&corev1.Pod{ObjectMeta: named("shop", "web", "pod-networks")}, &corev1.Pod{ObjectMeta: named("shop", "host")},
		&corev1.Pod{ObjectMeta: classic},
		&corev1.Namespace{ObjectMeta: named("", "shop", "tenant")},
		request("ours", "northbound.io/ovn-sb"), request("kubelet", "kubernetes.io/kubelet-serving"),
		&corev1.ConfigMap{ObjectMeta: named("kube-system", "northbound-settings")},
		&corev1.ConfigMap{ObjectMeta: named("kube-system", "other")},
		&corev1.ConfigMap{ObjectMeta: named(own, "ovn-nb-ca")}, &corev1.Secret{ObjectMeta: named(own, "ovn-nb-ca")},
		&corev1.Secret{ObjectMeta: named(own, "other")},
	}
}

func newCluster(out *bytes.Buffer, renewed time.Time) cleanup.Cluster {
	return cleanup.Cluster{Clients: &client.Clients{Kube: fake.NewClientset(objects(renewed)...), Dynamic: networks()},
		Namespace: own, Election: config.DefaultMaster().LeaderElect, Out: out}
}

// networks are those that users define: of each kind one that a master has protected, and one of others.
func networks() dynamic.Interface {
	lists := map[schema.GroupVersionResource]string{}
	var all []runtime.Object
	for _, k := range []kinds.Kind{kinds.UserNetwork(), kinds.ClusterUserNetwork()} {
		lists[k.Resource] = string(k.Kind) + "List"
		for name, finalizers := range map[string][]string{"kept": {"a", cluster.Finalizer, "b"}, "others": {"a"}} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(k.Resource.GroupVersion().WithKind(string(k.Kind)))
			u.SetName(name)
			u.SetFinalizers(finalizers)
			if k.Namespaced {
				u.SetNamespace("shop")
			}
			all = append(all, u)
		}
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, all...)
}

const removals = `- Node n1: k8s.ovn.org/node-subnets, k8s.ovn.org/node-chassis-id, ` +
	`k8s.ovn.org/node-mgmt-port-mac-addresses, k8s.ovn.org/node-primary-ifaddr, ` +
	`k8s.ovn.org/node-agent-ready, k8s.ovn.org/node-physical-networks, k8s.ovn.org/l3-gateway-config, ` +
	`k8s.ovn.org/node-gateway-router-lrp-ifaddrs
- Node n1: condition NetworkUnavailable
- Pod shop/web: k8s.ovn.org/pod-networks
- UserDefinedNetwork shop/kept: finalizer k8s.ovn.org/user-defined-network-protection
- ClusterUserDefinedNetwork kept: finalizer k8s.ovn.org/user-defined-network-protection
- Lease kube-node-lease/ovn-gateway.n1
- Lease kube-system/northbound-master
- CertificateSigningRequest ours
- ConfigMap kube-system/northbound-settings
- ConfigMap ovn-kubernetes/ovn-nb-ca
- Secret ovn-kubernetes/ovn-nb-ca
`

func TestCluster(t *testing.T) {
	var out bytes.Buffer
	c := newCluster(&out, time.Now().Add(-time.Minute))
	for _, step := range []struct {
		dryRun bool
		want   string
	}{{true, removals}, {false, removals}, {false, "Nothing to clean up.\n"}} {
		out.Reset()
		c.DryRun = step.dryRun
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != step.want {
			t.Errorf("dry run %t: printed\n%s\nwant\n%s", step.dryRun, got, step.want)
		}
	}
	kube := c.Clients.Kube
	node, err := kube.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil || len(node.Annotations) != 1 || node.Annotations["other"] != "stays" {
		t.Errorf("Node n1 has annotations %v, %v; want the other one", node.Annotations, err)
	}
	if c := node.Status.Conditions; len(c) != 1 || c[0].Type != corev1.NodeReady {
		t.Errorf("Node n1 has conditions %v, want the kubelet's", c)
	}
	other, err := kube.CoreV1().Nodes().Get(t.Context(), "n2", metav1.GetOptions{})
	if err != nil || len(other.Status.Conditions) != 2 {
		t.Errorf("Node n2 has conditions %v, %v; want both, of others", other.Status.Conditions, err)
	}
	shop, err := kube.CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{})
	if err != nil || shop.Annotations["k8s.ovn.org/tenant"] != "x" {
		t.Errorf("Namespace shop has annotations %v, %v; want the user's tenant", shop.Annotations, err)
	}
	network, err := c.Clients.Dynamic.Resource(kinds.UserNetwork().Resource).Namespace("shop").Get(t.Context(), "kept",
		metav1.GetOptions{})
	if err != nil || !slices.Equal(network.GetFinalizers(), []string{"a", "b"}) {
		t.Errorf("UserDefinedNetwork shop/kept: %v, %v; want the finalizers of others", network, err)
	}
	if _, err := kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "kubelet",
		metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestMasterLeads(t *testing.T) {
	var out bytes.Buffer
	err := newCluster(&out, time.Now()).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "master master-1 leads: stop the masters first") || out.Len() > 0 {
		t.Errorf("error %v, printed %q; want that a master leads, and no change", err, &out)
	}
}
