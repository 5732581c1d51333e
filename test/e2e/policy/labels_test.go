package policy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// windowChanges is the environment variable with the number of changes of labels and policies, instead of relabelled.
const windowChanges = "WINDOW_CHANGES"

const (
	relabelled = 16              // how many changes of labels and policies, there and back
	answerWait = 2 * time.Second // for an answer that is to come
	cutWait    = 300 * time.Millisecond
	exchanges  = 50 // after a change
)

// talk is a connection of a client in a pod, which asks again and again.
type talk struct {
	name         string
	exchange     func(wait time.Duration) error
	done, failed atomic.Int64
	slowest      atomic.Int64 // ns
}

// labels changes labels of both ends of connections, of their namespace, and policies. While policies allow the
// connections, no packet is lost. When they do no longer, the connections are cut. Pods that no policy allows reach
// nobody meanwhile. The master is killed in the middle.
func (b *bed) labels(t *testing.T) {
	const namespace = "labels"
	b.makeNamespace(t, namespace, map[string]string{"shade": "light"})
	b.allowRoles(t, namespace)
	b.makePod(t, serverPod(namespace, "server", home, map[string]string{"role": "db", "side": "server"}))
	b.makePod(t, serverPod(namespace, "client", away, map[string]string{"role": "web", "side": "client"}))
	b.awaitPod(t, namespace, "server")
	b.awaitPod(t, namespace, "client")
	b.awaitRemovals(t)
	machines.FlowsInSync(t, b.Cluster)
	inside := b.inside(t, namespace, "client", away)
	var talks []*talk
	for _, ip := range b.pods[namespace+"/server"] {
		to := netip.AddrPortFrom(ip, lowPort)
		talks = append(talks, overUDP(t, inside, to), overTCP(t, inside, to))
	}
	end := b.neverArrive(t, namespace)
	b.unbroken(t, namespace, talks)
	end()
	b.relabel(t, namespace, "client", "")
	cut(t, talks)
}

// awaitRemovals waits until the interfaces of earlier pods are gone. Open vSwitch in user space loses packets of others
// while an interface goes (docs/operate/upgrade.md, Limits), which is not what this test is about.
func (b *bed) awaitRemovals(t *testing.T) {
	t.Helper()
	machines.Eventually(t, "no interface of a pod that is gone", func(ctx context.Context) string {
		pods, err := b.Kubectl(ctx, "get", "pods", "-A", "-o",
			`jsonpath={range .items[*]}{.metadata.namespace}_{.metadata.name}{.metadata.deletionTimestamp} {end}`).Output()
		if err != nil {
			return err.Error()
		}
		there := strings.Fields(string(pods))
		for _, n := range b.Nodes {
			out, err := n.Run(ctx, "ovs-vsctl", "--bare", "--columns=external_ids", "find", "Interface",
				`external_ids:sandbox!=""`)
			if err != nil {
				return err.Error()
			}
			for _, field := range strings.Fields(out) {
				if port, is := strings.CutPrefix(field, "iface-id="); is && !slices.Contains(there, port) {
					return port + " is on " + n.Spec.Name
				}
			}
		}
		return ""
	})
}

// allowRoles makes policies of both ends. They allow the roles that pods' labels change between, and the shades that
// the namespace's label changes between, by rules of their own.
func (b *bed) allowRoles(t *testing.T, namespace string) {
	t.Helper()
	for _, role := range []string{"db", "cache"} {
		b.makePolicy(t, namespace, "to-"+role, toRole(role))
	}
	for _, role := range []string{"web", "api"} {
		b.makePolicy(t, namespace, "from-"+role, networkingv1.NetworkPolicySpec{
			PodSelector: selects("role", role), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{{To: ofRole("db")}, {To: ofRole("cache")}},
		})
	}
	b.makePolicy(t, namespace, "deny", networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}})
}

// ofRole is the pods of a role in the namespaces of each shade.
func ofRole(role string) (out []networkingv1.NetworkPolicyPeer) {
	pods := selects("role", role)
	for _, shade := range []string{"light", "dark"} {
		namespaces := selects("shade", shade)
		out = append(out, networkingv1.NetworkPolicyPeer{PodSelector: &pods, NamespaceSelector: &namespaces})
	}
	return out
}

// toRole lets clients connect to the pods of a role, to the given ports alone if there are any.
func toRole(role string, ports ...networkingv1.NetworkPolicyPort) networkingv1.NetworkPolicySpec {
	return networkingv1.NetworkPolicySpec{
		PodSelector: selects("role", role), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{
			{From: ofRole("web"), Ports: ports}, {From: ofRole("api"), Ports: ports}},
	}
}

// editPolicies gives the policies of the server's roles other rules.
func (b *bed) editPolicies(t *testing.T, namespace string, ports ...networkingv1.NetworkPolicyPort) {
	t.Helper()
	policies := b.client.NetworkingV1().NetworkPolicies(namespace)
	for _, role := range []string{"db", "cache"} {
		p, err := policies.Get(t.Context(), "to-"+role, metav1.GetOptions{})
		must(t, err)
		p.Spec = toRole(role, ports...)
		_, err = policies.Update(t.Context(), p, metav1.UpdateOptions{})
		must(t, err)
	}
}

// shade labels a namespace.
func (b *bed) shade(t *testing.T, namespace, shade string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{"shade":%q}}}`, shade)
	_, err := b.client.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	must(t, err)
}

func (b *bed) relabel(t *testing.T, namespace, pod, role string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{"role":%q}}}`, role)
	_, err := b.client.CoreV1().Pods(namespace).Patch(t.Context(), pod, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	must(t, err)
}

// unbroken changes labels and policies while the connections are in use.
func (b *bed) unbroken(t *testing.T, namespace string, talks []*talk) {
	t.Helper()
	port := intstr.FromInt32(lowPort)
	ports := []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: &port},
		{Protocol: new(corev1.ProtocolUDP), Port: &port}}
	changes := []func(){
		func() { b.relabel(t, namespace, "client", "api") },
		func() { b.relabel(t, namespace, "server", "cache") },
		func() { b.shade(t, namespace, "dark") },
		func() { b.editPolicies(t, namespace, ports...) },
		func() { b.relabel(t, namespace, "client", "web") },
		func() { b.relabel(t, namespace, "server", "db") },
		func() { b.shade(t, namespace, "light") },
		func() { b.editPolicies(t, namespace) },
	}
	var steps []func()
	number := machines.Number(t, windowChanges, relabelled)
	for i := range number {
		if i == number/2 {
			steps = append(steps, func() { b.killMaster(t) })
		}
		steps = append(steps, changes[i%uint64(len(changes))])
	}
	b.during(t, talks, steps...)
}

// during makes changes, one after the other, while connections are in use. None of these loses anything.
func (b *bed) during(t *testing.T, talks []*talk, changes ...func()) {
	t.Helper()
	machines.Alone(t)
	stop := make(chan struct{})
	var talking sync.WaitGroup
	for _, k := range talks {
		talking.Go(func() { k.goOn(t, stop) })
	}
	defer talking.Wait()
	defer close(stop)
	for _, change := range changes {
		change()
		machines.FlowsInSync(t, b.Cluster)
		for _, k := range talks {
			before := k.done.Load()
			machines.Eventually(t, k.name+" goes on", func(context.Context) string {
				if n := k.done.Load() - before; n < exchanges && k.failed.Load() == 0 {
					return fmt.Sprintf("%d exchanges", n)
				}
				return ""
			})
		}
	}
	for _, k := range talks {
		t.Logf("%s: %d exchanges during %d changes, the slowest %v, %d failed", k.name, k.done.Load(), len(changes),
			time.Duration(k.slowest.Load()).Round(time.Millisecond), k.failed.Load())
	}
}

// cut waits until connections are cut, and checks that they stay so.
func cut(t *testing.T, talks []*talk) {
	t.Helper()
	for _, k := range talks {
		machines.Eventually(t, k.name+" is cut", func(context.Context) string {
			if err := k.exchange(cutWait); err == nil {
				return "it is answered"
			}
			return ""
		})
		for range 5 {
			if err := k.exchange(cutWait); err == nil {
				t.Errorf("%s was cut and is answered again", k.name)
			}
		}
	}
}

func (k *talk) goOn(t *testing.T, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		begin := time.Now()
		if err := k.exchange(answerWait); err != nil {
			k.failed.Add(1)
			t.Errorf("%s after %d exchanges: %v", k.name, k.done.Load(), err)
			return
		}
		k.done.Add(1)
		k.slowest.Store(max(k.slowest.Load(), int64(time.Since(begin))))
	}
}

func dial(t *testing.T, from machines.Namespace, network string, to netip.AddrPort) net.Conn {
	t.Helper()
	var c net.Conn
	must(t, from.Within(func() (err error) {
		if network == "udp" {
			c, err = net.DialUDP(network, nil, net.UDPAddrFromAddrPort(to))
			return err
		}
		c, err = net.DialTCP(network, nil, net.TCPAddrFromAddrPort(to))
		return err
	}))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// overUDP exchanges a datagram each time: one that is lost is a failure.
func overUDP(t *testing.T, from machines.Namespace, to netip.AddrPort) *talk {
	c, buf := dial(t, from, "udp", to), make([]byte, 2048)
	return &talk{name: "UDP to " + to.String(), exchange: func(wait time.Duration) error {
		if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
			return err
		}
		if _, err := c.Write([]byte("?")); err != nil {
			return err
		}
		_, err := c.Read(buf)
		return err
	}}
}

// overTCP sends a request each time, over one connection.
func overTCP(t *testing.T, from machines.Namespace, to netip.AddrPort) *talk {
	c := dial(t, from, "tcp", to)
	r := bufio.NewReader(c)
	return &talk{name: "TCP to " + to.String(), exchange: func(wait time.Duration) error {
		if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: server\r\n\r\n"); err != nil {
			return err
		}
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}}
}
