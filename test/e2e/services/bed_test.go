package services

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// bed is a sandbox in which all nodes are gateways, with all services, backends and clients.
type bed struct {
	*sandbox.Cluster
	addrs map[string][]netip.Addr // of nodes, by name
	whose map[netip.Addr]string   // name of each address in the tables
}

func up(t *testing.T, all []*service) bed {
	t.Helper()
	c := machines.Up(t, sandbox.Options{Name: "services", Nodes: sandbox.DefaultNodes, Gateways: sandbox.DefaultNodes,
		DualStack: true})
	conf, err := c.Control.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	conf.WarningHandler = rest.NoWarnings{} // externalIPs are deprecated
	client, err := kubernetes.NewForConfig(conf)
	if err != nil {
		t.Fatal(err)
	}
	b := bed{c, map[string][]netip.Addr{}, map[netip.Addr]string{}}
	for _, n := range c.Nodes {
		b.knowNode(t, n.Spec.Name, n.Config.Addrs)
	}
	// The source address of packets that a node's kernel sends to a service that has its backend on that node.
	b.whose[netip.MustParseAddr("169.254.169.6")], b.whose[netip.MustParseAddr("fd69::6")] = "itself", "itself"
	for _, p := range (underlay.Families{DualStack: true}).Outside() {
		b.whose[p.Addr()] = "outside"
	}
	for prefix, node := range map[string]int{externalV4 + "0/24": 1, externalV6 + "/64": 1, balancedV4 + "0/24": 0,
		balancedV6 + "/64": 0} {
		via := c.Nodes[node].Config.Addrs[0]
		if netip.MustParsePrefix(prefix).Addr().Is6() {
			via = c.Nodes[node].Config.Addrs[1]
		}
		if _, err := c.Control.Run(t.Context(), "ip", "route", "replace", prefix, "via", via.Addr().String()); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range all {
		makeService(t, client, s)
	}
	for _, p := range pods() {
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range pods() {
		b.knowPod(t, client, p)
	}
	b.inSync(t, client, all)
	return b
}

// inSync waits until OVN has all endpoints on every node. A client of a service with session affinity gets another
// backend when an endpoint comes, and no answer tells that one is missing.
func (b bed) inSync(t *testing.T, client kubernetes.Interface, all []*service) {
	t.Helper()
	for _, s := range all {
		machines.Eventually(t, "the endpoints of "+s.name()+" are there", func(ctx context.Context) string {
			slices, err := client.DiscoveryV1().EndpointSlices("default").List(ctx,
				metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + s.name()})
			if err != nil {
				return err.Error()
			}
			ready := 0
			for _, slice := range slices.Items {
				for _, e := range slice.Endpoints {
					if e.Conditions.Ready != nil && *e.Conditions.Ready {
						ready++
					}
				}
			}
			if want := 2 * len(s.nodes); ready != want { // of both families
				return fmt.Sprintf("%d are ready, want %d", ready, want)
			}
			return ""
		})
	}
	machines.FlowsInSync(t, b.Cluster)
}

func makeService(t *testing.T, client kubernetes.Interface, s *service) {
	t.Helper()
	made, err := client.CoreV1().Services("default").Create(t.Context(), s.object(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ip := range made.Spec.ClusterIPs {
		s.clusterIPs = append(s.clusterIPs, netip.MustParseAddr(ip))
	}
	made.Status.LoadBalancer.Ingress = s.ingress()
	if _, err := client.CoreV1().Services("default").UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// knowNode records the names of a node's addresses and of its management port's.
func (b bed) knowNode(t *testing.T, name string, addrs []netip.Prefix) {
	t.Helper()
	for _, p := range addrs {
		b.addrs[name] = append(b.addrs[name], p.Addr())
		b.whose[p.Addr()] = name
	}
	for _, a := range machines.ManagementAddresses(t, b.Cluster, name) {
		b.whose[a] = name + "'s port"
	}
}

// knowPod waits until a pod is ready, and records its addresses.
func (b bed) knowPod(t *testing.T, client kubernetes.Interface, p *corev1.Pod) {
	t.Helper()
	machines.Eventually(t, "pod "+p.Name+" is ready", func(ctx context.Context) string {
		have, err := client.CoreV1().Pods("default").Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range have.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				for _, ip := range have.Status.PodIPs {
					if !p.Spec.HostNetwork {
						b.whose[netip.MustParseAddr(ip.IP)] = "client"
					}
				}
				return ""
			}
		}
		return fmt.Sprintf("conditions %+v", have.Status.Conditions)
	})
}

// client is a place from which services are asked.
type client struct {
	machines.Asker
	node string // "" for outside the cluster
	host bool   // on the host network
}

func (b bed) clients() (all []client) {
	inPod := func(name, pod, node string, host bool) {
		asker := machines.InPod(b.Cluster, "default", pod)
		asker.Name = name
		all = append(all, client{asker, node, host})
	}
	for _, n := range b.Nodes {
		inPod("a pod on "+n.Spec.Name, "client-"+n.Spec.Name, n.Spec.Name, false)
	}
	for _, n := range b.Nodes {
		all = append(all, client{machines.On(n.Member), n.Spec.Name, true})
	}
	inPod("a host-network pod on n3", "host-n3", "n3", true)
	return append(all, client{machines.On(b.Outside), "", true})
}
