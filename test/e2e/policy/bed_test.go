package policy

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// The namespaces. Policies are in shop.
const (
	shop     = "shop"
	friendly = "friends"
	strange  = "strangers"
)

// The nodes. The pods that policies apply to are on home. The other node is the gateway.
const (
	home = "n2"
	away = "n1"
)

// bed is the cluster of all tests.
type bed struct {
	*sandbox.Cluster
	client kubernetes.Interface
	pods   map[string][]netip.Addr // addresses of the pods, by namespace/name
	nodes  map[string][]netip.Addr // of the nodes
	links  map[string][]netip.Addr // of their management ports
	served map[string]service      // by the names of their pods; nil until world makes them
}

func up(t *testing.T, name string, master ...string) *bed {
	t.Helper()
	c := machines.Up(t, sandbox.Options{Name: name, Nodes: 2, Gateways: 1, DualStack: true, MasterArgs: master})
	conf, err := c.Control.RESTConfig()
	must(t, err)
	conf.QPS = -1
	client, err := kubernetes.NewForConfig(conf)
	must(t, err)
	b := &bed{c, client, map[string][]netip.Addr{}, map[string][]netip.Addr{}, map[string][]netip.Addr{}, nil}
	for _, n := range c.Nodes {
		for _, p := range n.Config.Addrs {
			b.nodes[n.Spec.Name] = append(b.nodes[n.Spec.Name], p.Addr())
		}
		b.links[n.Spec.Name] = machines.ManagementAddresses(t, c, n.Spec.Name)
	}
	for name, team := range map[string]string{shop: "shop", friendly: "friends", strange: "strangers"} {
		b.makeNamespace(t, name, map[string]string{"team": team})
	}
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bed) makeNamespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	_, err := b.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	must(t, err)
	machines.Eventually(t, "namespace "+name+" has its service account", func(ctx context.Context) string {
		if _, err := b.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// portName is the name of lowPort over a protocol.
func portName(p corev1.Protocol) string { return "low-" + strings.ToLower(string(p)) }

// serverPod answers on both ports, over every protocol.
func serverPod(namespace, name, node string, labels map[string]string) *corev1.Pod {
	container := func(port int32) corev1.Container {
		return corev1.Container{
			Name: fmt.Sprint("port-", port), Image: "localhost/echo:1", ImagePullPolicy: corev1.PullIfNotPresent,
			Args: []string{fmt.Sprint(port)},
		}
	}
	low := container(lowPort)
	for _, p := range protocols() {
		low.Ports = append(low.Ports, corev1.ContainerPort{Name: portName(p), Protocol: p, ContainerPort: lowPort})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
		Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{low, container(highPort)}},
	}
}

func (b *bed) makePod(t *testing.T, p *corev1.Pod) {
	t.Helper()
	_, err := b.client.CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
}

// awaitPod waits until a pod is ready, and records its addresses.
func (b *bed) awaitPod(t *testing.T, namespace, name string) {
	t.Helper()
	machines.Eventually(t, "pod "+namespace+"/"+name+" is ready", func(ctx context.Context) string {
		have, err := b.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range have.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				var ips []netip.Addr
				for _, ip := range have.Status.PodIPs {
					ips = append(ips, netip.MustParseAddr(ip.IP))
				}
				b.pods[namespace+"/"+name] = ips
				return ""
			}
		}
		return fmt.Sprintf("conditions %+v", have.Status.Conditions)
	})
}

// service is the addresses of a Service, and its node ports: by protocol and port.
type service struct {
	clusterIPs []netip.Addr
	nodePorts  map[string]uint16
}

func place(protocol string, port int) string { return fmt.Sprint(protocol, " ", port) }

// makeService makes a Service with a node port for each port and protocol of the pods with this label.
func (b *bed) makeService(t *testing.T, namespace, name string, selector map[string]string) service {
	t.Helper()
	family := corev1.IPFamilyPolicyRequireDualStack
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, IPFamilyPolicy: &family, Selector: selector},
	}
	for _, p := range protocols() {
		for _, port := range []int32{lowPort, highPort} {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d-%s", port, strings.ToLower(string(p))),
				Protocol: p, Port: port, TargetPort: intstr.FromInt32(port)})
		}
	}
	made, err := b.client.CoreV1().Services(namespace).Create(t.Context(), s, metav1.CreateOptions{})
	must(t, err)
	out := service{nodePorts: map[string]uint16{}}
	for _, ip := range made.Spec.ClusterIPs {
		out.clusterIPs = append(out.clusterIPs, netip.MustParseAddr(ip))
	}
	for _, p := range made.Spec.Ports {
		out.nodePorts[place(strings.ToLower(string(p.Protocol)), int(p.Port))] = uint16(p.NodePort)
	}
	return out
}

func (b *bed) inPod(namespace, pod string) machines.Asker {
	return machines.InPod(b.Cluster, namespace, pod)
}

// ranges lists the subnets of all pods, and of those of the home node in the same order.
func (b *bed) ranges(t *testing.T) (all, ofHome []string) {
	t.Helper()
	for _, s := range strings.Split(b.Control.Config.ClusterSubnets, ",") {
		cidr, _, _ := strings.Cut(s, ";")
		if parts := strings.Split(cidr, "/"); len(parts) == 3 { // with the length of nodes' subnets
			cidr = parts[0] + "/" + parts[1]
		}
		p := netip.MustParsePrefix(cidr)
		all = append(all, p.String())
		for _, n := range machines.Subnets(t, b.Cluster, home) {
			if n.Addr().Is4() == p.Addr().Is4() {
				ofHome = append(ofHome, n.String())
			}
		}
	}
	return all, ofHome
}
