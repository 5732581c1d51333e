package service_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const namespace = "default"

func named(n string) cluster.Name { return cluster.Name{Namespace: namespace, Name: n} }

// bed is a cluster on a real OVN: nodes, and network namespaces that stand for pods on them.
type bed struct {
	*testing.T
	objects []cluster.Object // nodes and pods
	nodes   []*testkit.Node
	session *ovsdb.Session
}

// onOVN runs a test on a cluster with these nodes. Each node has pods: a client, and servers. The i-th node is ni, its
// client is ci. The pods of a node have addresses from .3 on, in this order.
func onOVN(t *testing.T, nodes []*cluster.Node, servers [][]string, test func(*bed)) {
	t.Helper()
	sb := testkit.StartOVN(t)
	b := &bed{T: t, objects: []cluster.Object{&cluster.Namespace{Name: namespace}}}
	for i, n := range nodes {
		n.ChassisID = n.Name
		b.objects = append(b.objects, n)
		b.nodes = append(b.nodes, testkit.StartNode(t, n.Name, sb, netip.MustParsePrefix(fmt.Sprintf("10.100.0.%d/24", 1+i))))
		b.nodes[i].Run(t, "ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:system-id="+n.Name)
		for _, p := range append([]string{client(i)}, servers[i]...) {
			b.objects = append(b.objects, &cluster.Pod{Name: named(p), UID: "uid-" + p, Node: n.Name,
				Created: int64(len(b.objects))})
		}
	}
	northbound := config.OVSDB{Addresses: []string{"unix:/run/ovn/ovnnb_db.sock"}}
	err := ovsdb.With(t.Context(), northbound, offline.New(b.config(), nil).Schema, slog.New(slog.DiscardHandler),
		func(s *ovsdb.Session) error {
			b.session = s
			made := b.set()
			for i := range nodes {
				for _, p := range append([]string{client(i)}, servers[i]...) {
					b.attach(made, i, p)
				}
			}
			for i := range nodes {
				for _, p := range append([]string{client(i)}, servers[i]...) {
					b.installed(i, p)
				}
				for _, p := range servers[i] {
					serve(t, p)
				}
			}
			test(b)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range b.nodes {
		if dropped := strings.TrimSpace(n.Run(t, "ovs-appctl", "coverage/read-counter",
			"datapath_drop_recirc_error")); dropped != "0" {
			t.Errorf("%s packets on %s were recirculated too often", dropped, n.Name)
		}
	}
}

// client is the name of the client on the i-th node.
func client(i int) string { return fmt.Sprintf("c%d", i+1) }

func (b *bed) config() config.Cluster {
	c := config.DefaultCluster()
	var errs [2]error
	c.Subnets, errs[0] = config.ParseClusterSubnets("10.128.0.0/14/23,fd01::/48/64")
	c.ServiceCIDRs, errs[1] = config.ParsePrefixes("service CIDRs", "10.96.0.0/16,fd02::/112")
	if err := errors.Join(errs[:]...); err != nil {
		b.Fatal(err)
	}
	return c
}

// set makes the Northbound database what the translators make of the nodes, the pods, and these services.
func (b *bed) set(services ...cluster.Object) *offline.Cluster {
	b.Helper()
	made := offline.New(b.config(), slices.Concat(b.objects, services))
	if len(made.Problems) != 0 {
		b.Fatal(made.Problems)
	}
	testkit.Eventually(b.T, "the database is as wanted", func() string {
		batch := made.Plan(b.session.View(), append(made.Owners(), b.session.Owners()...), nil)
		if err := batch.Err(); err != nil {
			return err.Error()
		}
		plans := batch.Plans
		if len(plans) == 0 {
			return ""
		}
		if _, err := b.session.Transact(b.Context(), plans); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%d plans", len(plans))
	})
	return made
}

// attach makes a pod's network namespace.
func (b *bed) attach(made *offline.Cluster, node int, p string) {
	b.Helper()
	network := made.State.PodNetworks[cluster.PodPort{Pod: named(p)}]
	n := b.nodes[node]
	testkit.Run(b.T, "sh", "-ec", fmt.Sprintf(`ip netns add %[1]s; ip -n %[1]s link set lo up
		ip link add %[1]s-host netns %[7]s type veth peer name eth0 netns %[1]s;
		ip -n %[7]s link set %[1]s-host up; ip -n %[1]s link set eth0 address %[2]s mtu 1400 up;
		ip netns exec %[1]s ethtool -K eth0 tx off
		ip -n %[1]s addr add %[3]s dev eth0; ip -n %[1]s addr add %[4]s dev eth0 nodad;
		ip -n %[1]s route add default via %[5]s; ip -n %[1]s route add default via %[6]s`,
		p, network.MAC, network.IPs[0], network.IPs[1], network.Gateways[0], network.Gateways[1], n.Name))
	testkit.Eventually(b.T, "br-int of "+n.Name, func() string {
		if out, err := n.Try(b.T, "ovs-vsctl", "br-exists", "br-int"); err != nil {
			return out + err.Error()
		}
		return ""
	})
	n.Run(b.T, "ovs-vsctl", "add-port", "br-int", p+"-host", "--", "set", "Interface", p+"-host",
		"external_ids:iface-id=default_"+p, "external_ids:iface-id-ver=uid-"+p)
}

func (b *bed) installed(node int, p string) {
	b.Helper()
	testkit.Eventually(b.T, "the port of "+p, func() string {
		if out := b.nodes[node].Run(b.T, "ovs-vsctl", "--if-exists", "get", "Interface", p+"-host",
			"external_ids:ovn-installed"); !strings.Contains(out, "true") {
			return "not installed"
		}
		return ""
	})
}

// podAddrs lists the addresses of the i-th pod of a node; the client is pod 0.
func podAddrs(node, i int) []netip.Addr {
	return []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.128.%d.%d", 2*node, 3+i)),
		netip.MustParseAddr(fmt.Sprintf("fd01:0:0:%d::%d", node, 3+i))}
}

// serve makes a pod answer every connection to port 8080, TCP or UDP, with its name.
func serve(t *testing.T, pod string) {
	t.Helper()
	err := testkit.InNetns(pod, func() error {
		l, err := net.Listen("tcp", ":8080")
		if err != nil {
			return err
		}
		u, err := net.ListenPacket("udp", ":8080")
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close(); u.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				fmt.Fprintln(c, pod)
				c.Close()
			}
		}()
		go func() {
			buf := make([]byte, 64)
			for {
				_, from, err := u.ReadFrom(buf)
				if err != nil {
					return
				}
				_, _ = u.WriteTo([]byte(pod+"\n"), from) // a lost answer is asked for again
			}
		}()
		return nil
	})
	if err != nil {
		t.Fatalf("serving in pod %s: %v", pod, err)
	}
}

// ask connects n times from a pod, each time from another port, and counts the names that answer. Failures are counted
// under their error.
func ask(t *testing.T, from, network, vip string, n int) map[string]int {
	t.Helper()
	return askFor(t, from, network, vip, n, 5*time.Second)
}

// askFor is ask with a time limit for each answer.
func askFor(t *testing.T, from, network, vip string, n int, limit time.Duration) map[string]int {
	t.Helper()
	out := map[string]int{}
	for range n {
		who, err := askOnce(from, network, vip, limit)
		if err != nil {
			who = err.Error()[strings.LastIndex(err.Error(), ": ")+1:]
		}
		out[strings.TrimSpace(who)]++
	}
	return out
}

func askOnce(from, network, vip string, limit time.Duration) (string, error) {
	var c net.Conn
	err := testkit.InNetns(from, func() (err error) {
		c, err = net.DialTimeout(network, vip, limit)
		return err
	})
	if err != nil {
		return "", err
	}
	defer c.Close()
	return question(c, network, limit)
}

// question asks over a connection for the name of the server.
func question(c net.Conn, network string, limit time.Duration) (string, error) {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if network == "udp" {
		if _, err := io.WriteString(c, "?"); err != nil {
			return "", err
		}
	}
	return bufio.NewReader(c).ReadString('\n')
}
