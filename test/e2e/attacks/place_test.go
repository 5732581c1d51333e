package attacks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// honestLink begins the names of honest questions to all of a link.
const honestLink = "honest question to the link"

// spoofer makes another pod beside the attacker, and watches whoever could be deceived.
func (b bed) spoofer(t *testing.T) *spoofer {
	t.Helper()
	p := pod("beside")
	p.Spec.NodeName = "n1"
	_, err := b.admin.CoreV1().Pods(tenant).Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
	n1, n2 := b.Nodes[0], b.Nodes[1]
	attacker, sibling, elsewhere := b.party(t, "on-n1"), b.party(t, "beside"), b.party(t, "on-n2")
	s := &spoofer{bed: b}
	s.place = b.place(t, attacker, sibling, elsewhere)
	s.honest = s.place.honest()
	arps := map[string]bool{}
	for _, k := range slices.Concat(spoofs(s.place), s.honest) {
		if len(k.key) != markLength {
			arps[k.key] = true
		}
	}
	from := s.namespace(t, n1, "on-n1")
	must(t, from.Within(func() (err error) {
		s.fd, err = machines.PacketSocket("eth0")
		return err
	}))
	t.Cleanup(func() { _ = unix.Close(s.fd) })
	s.at = []*arrivals{
		arrive(t, "pod beside it", s.namespace(t, n1, "beside"), "eth0", arps),
		arrive(t, "pod on n2", s.namespace(t, n2, "on-n2"), "eth0", arps),
		arrive(t, "n1's port", n1, managementPort(n1), arps),
		arrive(t, "n2's port", n2, managementPort(n2), arps),
		arrive(t, "outside", b.Outside, "eth0", arps),
	}
	return s
}

// managementPort is the interface through which a node reaches pods.
func managementPort(n *node.Node) string { return "k8s-" + n.Spec.Name }

// namespace is a pod's, until the test ends.
func (s *spoofer) namespace(t *testing.T, n *node.Node, pod string) machines.Namespace {
	t.Helper()
	ns := machines.PodNamespace(t, n, tenant, pod)
	t.Cleanup(func() { _ = ns.Close() })
	s.pods = append(s.pods, ns)
	return ns
}

// party is a pod with its addresses, once it runs.
func (b bed) party(t *testing.T, name string) (p party) {
	t.Helper()
	machines.Eventually(t, "pod "+name+" runs", func(ctx context.Context) string {
		pod, err := b.admin.CoreV1().Pods(tenant).Get(ctx, name, metav1.GetOptions{})
		if err != nil || pod.Status.Phase != corev1.PodRunning || len(pod.Status.PodIPs) != 2 {
			return fmt.Sprintf("it does not: %v", err)
		}
		p.addrs = nil
		for _, ip := range pod.Status.PodIPs {
			p.addrs = append(p.addrs, netip.MustParseAddr(ip.IP))
		}
		return ""
	})
	p.mac = macOf(p.addrs[0])
	return p
}

// macOf is the MAC that follows from an IPv4 address of the cluster.
func macOf(a netip.Addr) net.HardwareAddr {
	return append(net.HardwareAddr{0x0a, 0x58}, a.AsSlice()...)
}

// place is the network of a pod on n1.
func (b bed) place(t *testing.T, attacker, sibling, elsewhere party) place {
	t.Helper()
	p := place{attacker: attacker, sibling: sibling, elsewhere: elsewhere.addrs,
		evil: net.HardwareAddr{0x0a, 0x58, 0xee, 0xee, 0xee, 0xee}, pretended: map[string][]netip.Addr{}}
	add := func(what string, addrs ...netip.Addr) { p.pretended[what] = append(p.pretended[what], addrs...) }
	p.management.addrs = machines.ManagementAddresses(t, b.Cluster, "n1")
	p.otherRouter = macOf(machines.Subnets(t, b.Cluster, "n2")[0].Addr().Next())
	p.otherNode = machines.ManagementAddresses(t, b.Cluster, "n2")
	for _, s := range machines.Subnets(t, b.Cluster, "n1") {
		p.router.addrs = append(p.router.addrs, s.Addr().Next())
		last := s.Addr().AsSlice()
		last[len(last)-1] = 0xf0
		unused, _ := netip.AddrFromSlice(last)
		p.unused = append(p.unused, unused)
	}
	p.router.mac, p.management.mac = macOf(p.router.addrs[0]), macOf(p.management.addrs[0])
	link, err := b.Outside.Netlink()
	must(t, err)
	defer link.Close()
	eth0, err := link.LinkByName("eth0")
	must(t, err)
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		addrs, err := link.AddrList(eth0, family)
		must(t, err)
		out, _ := netip.AddrFromSlice(addrs[0].IP)
		p.outside = append(p.outside, out.Unmap())
	}
	add("another pod on the node", sibling.addrs...)
	add("another pod's link-local", linkLocal(sibling.mac))
	add("a pod on another node", elsewhere.addrs...)
	add("the gateway", p.router.addrs...)
	add("the gateway's link-local", linkLocal(p.router.mac))
	add("the management port", p.management.addrs...)
	add("another node's management port", p.otherNode...)
	add("a host outside", p.outside...)
	add("an unused address of the subnet", p.unused...)
	for _, n := range b.Nodes {
		for _, a := range n.Config.Addrs {
			add("node "+n.Spec.Name, a.Addr())
			p.tunnels = append(p.tunnels, a.Addr())
		}
	}
	for _, a := range b.Control.Config.Addrs {
		add("the API server", a.Addr())
	}
	for what, texts := range map[string]string{
		"the API server's Service": "10.96.0.1 fd02::1", "no address": "0.0.0.0 ::", "loopback": "127.0.0.1 ::1",
		"a group": "224.0.0.1 ff02::1", "broadcast": "255.255.255.255", "a hairpin address": "169.254.169.5 fd69::5",
		"the join switch": "100.64.1.1 fd98::1", "IPv4-mapped": "::ffff:10.96.0.1",
	} {
		for text := range strings.FieldsSeq(texts) {
			add(what, netip.MustParseAddr(text))
		}
	}
	p.tunnelled = b.tunnelled(t)
	return p
}

// tunnelled returns what makes the Geneve packet in which n1 would send a frame to the pod on n2: with the key of n2's
// switch, and those of the ports (ovn-architecture(7), Tunnel Encapsulations).
func (b bed) tunnelled(t *testing.T) func([]byte) []byte {
	t.Helper()
	key := func(table, where string) uint32 {
		out, err := b.SBCtl(t.Context(), "--bare", "--columns=tunnel_key", "find", table, where)
		must(t, err)
		n, err := strconv.ParseUint(strings.TrimSpace(out), 10, 24)
		must(t, err)
		return uint32(n)
	}
	network, to := key("Datapath_Binding", "external_ids:name=n2"), key("Port_Binding", "logical_port="+tenant+"_on-n2")
	from := key("Port_Binding", "logical_port=stor-n2")
	head := binary.BigEndian.AppendUint32([]byte{2, 0x40, 0x65, 0x58}, network<<8)
	head = binary.BigEndian.AppendUint32(append(head, 0x01, 0x02, 0x80, 1), from<<16|to)
	return func(frame []byte) []byte { return slices.Concat(head, frame) }
}

// honest are packets with the pod's own addresses: datagrams to everybody, and questions to all of its link.
func (p place) honest() []kind {
	var out []kind
	for _, from := range p.attacker.addrs {
		key := mark(900 + len(out))
		k := kind{what: "honest datagrams from " + from.String(), key: key}
		k.frames = p.datagrams(from, []byte(key), plain(p.attacker.mac))
		out = append(out, k)
	}
	a := p.attacker
	question := arp(1, a.mac, a.addrs[0], make(net.HardwareAddr, 6), p.unused[0])
	out = append(out, kind{honestLink + " (ARP)", string(question),
		[][]byte{ethernet(broadcast(), a.mac, unix.ETH_P_ARP, question)}, ""})
	m := &making{place: p}
	m.icmp(honestLink+" (ND)", a.addrs[1], func([]byte) []byte {
		return solicitation(p.unused[1], a.mac)([]byte(mark(900 + len(out))))
	}, solicited(p.unused[1]))
	m.kinds[0].key = mark(900 + len(out))
	return append(out, m.kinds...)
}

// believed checks that nobody has learned a MAC or a route from what was sent: neither the kernels of pods and nodes,
// nor OVN. Where the attacker's own addresses are is its own affair.
func (s *spoofer) believed(t *testing.T) {
	t.Helper()
	ours := linkLocal(s.attacker.mac)
	known := func(where string, mac net.HardwareAddr, a netip.Addr) {
		liar := mac.String() == s.evil.String() || mac.String() == s.attacker.mac.String()
		if liar && a != ours && !slices.Contains(s.attacker.addrs, a) {
			t.Errorf("%s believes that %s is at %s", where, a, mac)
		}
	}
	for where, in := range map[string]within{"pod beside": s.pods[1], "pod on-n2": s.pods[2], "n1": s.Nodes[0],
		"n2": s.Nodes[1]} {
		must(t, in.Within(func() error {
			all, err := netlink.NeighList(0, 0)
			for _, n := range all {
				if a, ok := netip.AddrFromSlice(n.IP); ok {
					known(where, n.HardwareAddr, a.Unmap())
				}
			}
			routes, failed := netlink.RouteList(nil, netlink.FAMILY_V6)
			for _, r := range routes {
				if r.Gw.Equal(ours.AsSlice()) {
					t.Errorf("%s has the route %s", where, r)
				}
			}
			return errors.Join(err, failed)
		}))
	}
	learned, err := s.SBCtl(t.Context(), "--bare", "--columns=ip,mac", "list", "MAC_Binding")
	must(t, err)
	words := strings.Fields(learned)
	for i := 0; i+1 < len(words); i += 2 {
		mac, err := net.ParseMAC(words[i+1])
		must(t, err)
		known("OVN", mac, netip.MustParseAddr(words[i]))
	}
}
