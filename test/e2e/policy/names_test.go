package policy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// outsidePort is where the host outside answers.
const outsidePort = 8080

// nameServer is where the master of every test asks for names: at the host outside.
func nameServer() string {
	return netip.AddrPortFrom(underlay.Families{DualStack: true}.Outside()[0].Addr(), 53).String()
}

// zone is a server of DNS at the host outside. It knows one name, whose records a test changes.
type zone struct {
	mu    sync.Mutex
	addrs []netip.Addr
}

func (z *zone) set(addrs ...netip.Addr) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.addrs = addrs
}

// ServeDNS implements dns.Handler. Records live for a second.
func (z *zone) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	z.mu.Lock()
	defer z.mu.Unlock()
	m := new(dns.Msg).SetReply(q)
	for _, a := range z.addrs {
		kind := "AAAA"
		if a.Is4() {
			kind = "A"
		}
		r, err := dns.NewRR(fmt.Sprintf("%s 1 IN %s %s", "www.example.org.", kind, a))
		if err == nil && q.Question[0].Name == "www.example.org." && q.Question[0].Qtype == r.Header().Rrtype {
			m.Answer = append(m.Answer, r)
		}
	}
	_ = w.WriteMsg(m)
}

// serve starts the server. The result stops it.
func (b *bed) serve(t *testing.T, z *zone) (stop func()) {
	t.Helper()
	var packets net.PacketConn
	must(t, b.Outside.Within(func() (err error) {
		packets, err = net.ListenPacket("udp", nameServer())
		return err
	}))
	started := make(chan struct{})
	s := &dns.Server{PacketConn: packets, Handler: z, NotifyStartedFunc: func() { close(started) }}
	ended := make(chan error, 1)
	go func() { ended <- s.ActivateAndServe() }()
	<-started
	stop = sync.OnceFunc(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	t.Cleanup(stop)
	return stop
}

// domainNames checks that packets of pods follow the records of a name. What its records say about hosts inside of the
// cluster opens nothing, and a new master that gets no answer from DNS cuts nothing.
func (b *bed) domainNames(t *testing.T) {
	const namespace = "names"
	first, second := (underlay.Families{DualStack: true}).Outside(), []netip.Addr(nil)
	for _, p := range first {
		other := netip.PrefixFrom(p.Addr().Next(), p.Bits())
		second = append(second, other.Addr())
		_, err := b.Outside.Run(t.Context(), "ip", "address", "add", other.String(), "dev", "eth0", "nodad")
		must(t, err)
		t.Cleanup(func() {
			_, _ = b.Outside.Run(context.Background(), "ip", "address", "del", other.String(), "dev", "eth0")
		})
	}
	old := []netip.Addr{first[0].Addr(), first[1].Addr()}
	z := &zone{addrs: old}
	stop := b.serve(t, z)
	b.makeNamespace(t, namespace, map[string]string{"team": namespace})
	b.makePod(t, serverPod(namespace, "client", home, nil))
	b.awaitPod(t, namespace, "client")
	inside := b.inside(t, namespace, "client", home)
	machines.InstallClusterPolicies(t, b.Cluster)
	machines.Kubectl(t, b.Cluster, fmt.Sprintf(`
apiVersion: policy.networking.k8s.io/v1alpha2
kind: ClusterNetworkPolicy
metadata: {name: names}
spec:
  tier: Admin
  priority: 70
  subject: {namespaces: {matchLabels: {team: %s}}}
  egress:
  - {action: Accept, to: [{domainNames: [www.example.org, nobody.example.org]}]}
  - {action: Deny, to: [{networks: [0.0.0.0/0, "::/0"]}]}
`, namespace), "apply", "-f", "-")
	b.awaitRows(t, "names", true)
	reached := func(want ...netip.Addr) {
		t.Helper()
		machines.Eventually(t, fmt.Sprintf("the pod reaches %v alone", want), func(context.Context) string {
			var got []netip.Addr
			for _, a := range slices.Concat(old, second) {
				if answers(inside, a) {
					got = append(got, a)
				}
			}
			if !slices.Equal(got, want) {
				return fmt.Sprintf("it reaches %v", got)
			}
			return ""
		})
	}
	reached(old...)
	b.awaitCondition(t, "names", "True DomainNameTrouble 1")
	z.set(second...)
	reached(second...)
	z.set(old[0], second[1]) // one family follows by itself
	reached(old[0], second[1])

	z.set(old...)
	reached(old...)
	var talks []*talk
	for _, a := range old {
		to := netip.AddrPortFrom(a, outsidePort)
		talks = append(talks, overUDP(t, inside, to), overTCP(t, inside, to))
	}
	stop()
	b.during(t, talks, func() { must(t, b.Restart(t.Context(), "master", syscall.SIGKILL)) })
	reached(old...)

	b.serve(t, z)
	host := b.nodes[away]
	z.set(host...)
	b.awaitCondition(t, "names", "True DomainNameTrouble 1")
	machines.Eventually(t, "addresses of a node are reported", func(context.Context) string {
		for _, c := range b.policy(t, "names").Status.Conditions {
			if strings.Contains(c.Message, "are not accepted by name: www.example.org") {
				return ""
			}
		}
		return fmt.Sprintf("conditions %+v", b.policy(t, "names").Status.Conditions)
	})
	reached()
	b.unrule(t, "names")
	reached(slices.Concat(old, second)...)
}

// answers is true when the host outside answers a client in a network namespace, at an address of its.
func answers(from machines.Namespace, a netip.Addr) bool {
	var c net.Conn
	err := from.Within(func() (err error) {
		c, err = net.DialTimeout("tcp", netip.AddrPortFrom(a, outsidePort).String(), time.Second)
		return err
	})
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
