package service_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/show"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const namespace = "default"

func named(n string) cluster.Name { return cluster.Name{Namespace: namespace, Name: n} }

// pods is a client and three servers on one node.
var pods = []string{"client", "s1", "s2", "s3"}

// onOVN is a cluster with a real OVN: what the translators make of the
// services, bound to network namespaces that stand for the pods. The pods have
// their addresses in the order of their names from .3 on.
func onOVN(t *testing.T, services ...cluster.Object) {
	t.Helper()
	sb := testkit.StartOVN(t)
	testkit.StartVSwitch(t)
	testkit.Run(t, "sh", "-ec", `sysctl -q -w net.ipv4.conf.all.arp_ignore=1
		ovs-vsctl add-br br-int -- set bridge br-int datapath_type=netdev fail_mode=secure -- set Open_vSwitch . external_ids:system-id=n1 external_ids:ovn-remote=`+sb+
		` external_ids:ovn-encap-type=geneve external_ids:ovn-encap-ip=127.0.0.1 external_ids:ovn-bridge-datapath-type=netdev`)
	c := config.DefaultCluster()
	var err error
	if c.Subnets, err = config.ParseClusterSubnets("10.128.0.0/14/23,fd01::/48/64"); err != nil {
		t.Fatal(err)
	}
	objects := append([]cluster.Object{&cluster.Namespace{Name: namespace}, &cluster.Node{Name: "n1", ChassisID: "n1"}}, services...)
	for _, p := range pods {
		objects = append(objects, &cluster.Pod{Name: named(p), UID: "uid-" + p, Node: "n1"})
	}
	made := offline.New(c, objects)
	db, errs := made.Database()
	if len(errs)+len(made.Problems) != 0 {
		t.Fatalf("errors %v, problems %v", errs, made.Problems)
	}
	var script strings.Builder
	if err := show.Write(&script, show.NBCtl, made.Schema, db); err != nil {
		t.Fatal(err)
	}
	testkit.Run(t, "sh", "-ec", script.String())
	testkit.StartOVNController(t)
	for i, p := range pods {
		network := made.State.PodNetworks[named(p)]
		if network.IPs[0].Addr() != podAddrs(i)[0] {
			t.Fatalf("pod %s has %v", p, network.IPs)
		}
		testkit.Run(t, "sh", "-ec", fmt.Sprintf(`ip netns add %[1]s; ip -n %[1]s link set lo up
			ip link add %[1]s-host type veth peer name eth0 netns %[1]s; ip link set %[1]s-host up; ip -n %[1]s link set eth0 address %[2]s up; ip netns exec %[1]s ethtool -K eth0 tx off
			ip -n %[1]s addr add %[3]s dev eth0; ip -n %[1]s addr add %[4]s dev eth0 nodad; ip -n %[1]s route add default via %[5]s; ip -n %[1]s route add default via %[6]s
			ovs-vsctl add-port br-int %[1]s-host -- set Interface %[1]s-host external_ids:iface-id=default_%[1]s external_ids:iface-id-ver=uid-%[1]s`,
			p, network.MAC, network.IPs[0], network.IPs[1], network.Gateways[0], network.Gateways[1]))
	}
	for _, p := range pods {
		testkit.Eventually(t, "the port of "+p, func() string {
			if out := testkit.Run(t, "ovs-vsctl", "--if-exists", "get", "Interface", p+"-host", "external_ids:ovn-installed"); !strings.Contains(out, "true") {
				return "not installed"
			}
			return ""
		})
	}
	for _, p := range pods[1:] {
		serve(t, p)
	}
}

// podAddrs is the addresses of the i-th pod.
func podAddrs(i int) []netip.Addr {
	return []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.128.0.%d", 3+i)), netip.MustParseAddr(fmt.Sprintf("fd01::%d", 3+i))}
}

// inside runs f in a pod's network namespace. The thread is not used again.
func inside(t *testing.T, pod string, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		ns, err := os.Open("/run/netns/" + pod)
		if err == nil {
			defer ns.Close()
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatalf("in pod %s: %v", pod, err)
	}
}

// serve has a pod tell its name to whoever connects to port 8080, TCP or UDP.
func serve(t *testing.T, pod string) {
	t.Helper()
	inside(t, pod, func() error {
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
}

// ask connects n times from the client, each time from another port, and counts
// who answers. What fails is counted under its error.
func ask(t *testing.T, network, vip string, n int) map[string]int {
	t.Helper()
	return askFor(t, network, vip, n, 5*time.Second)
}

// askFor is ask with the time that an answer may take.
func askFor(t *testing.T, network, vip string, n int, limit time.Duration) map[string]int {
	t.Helper()
	out := map[string]int{}
	inside(t, "client", func() error {
		for range n {
			who, err := askOnce(network, vip, limit)
			if err != nil {
				who = err.Error()[strings.LastIndex(err.Error(), ": ")+1:]
			}
			out[strings.TrimSpace(who)]++
		}
		return nil
	})
	return out
}

func askOnce(network, vip string, limit time.Duration) (string, error) {
	c, err := net.DialTimeout(network, vip, limit)
	if err != nil {
		return "", err
	}
	defer c.Close()
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

// Packets go where the rows say: to every ready endpoint, to always the same one
// when there is affinity, to those that are on their way out when there
// is nobody else, and nowhere, at once, when there is nobody at all; on every
// sort of address.
func TestPackets(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	ports := []cluster.ServicePort{{Name: "t", Protocol: cluster.TCP, Port: 80}, {Name: "u", Protocol: cluster.UDP, Port: 80}}
	service := func(name string, n int, affinity int, conditions ...cluster.Conditions) []cluster.Object {
		ips := func(v4, v6 string) []netip.Addr {
			return []netip.Addr{netip.MustParseAddr(fmt.Sprintf(v4, n)), netip.MustParseAddr(fmt.Sprintf(v6, n))}
		}
		s := &cluster.Service{Name: named(name), Type: cluster.LoadBalancer, Ports: ports, AffinitySeconds: affinity, ExternalLocal: true,
			ClusterIPs: ips("10.96.0.%d", "fd02::%d"), ExternalIPs: ips("192.0.2.%d", "2001:db8::%d")}
		for _, a := range ips("198.51.100.%d", "2001:db8:1::%d") {
			s.Ingress = append(s.Ingress, cluster.Ingress{Addr: a})
		}
		e := &cluster.EndpointSlice{Name: named(name), Service: name, Ports: []cluster.EndpointPort{{Name: "t", Protocol: cluster.TCP, Port: 8080}, {Name: "u", Protocol: cluster.UDP, Port: 8080}}}
		for i, c := range conditions {
			for _, a := range podAddrs(1 + i) {
				e.Endpoints = append(e.Endpoints, cluster.Endpoint{Addr: a, Conditions: c})
			}
		}
		return []cluster.Object{s, e}
	}
	ready, leaving := cluster.Ready|cluster.Serving, cluster.Serving|cluster.Terminating
	var objects []cluster.Object
	for _, s := range [][]cluster.Object{
		service("spread", 1, 0, ready, ready, ready), service("sticky", 2, 86400, ready, ready, ready),
		service("leaving", 3, 0, leaving, cluster.Terminating, leaving), service("nobody", 4, 0, 0, cluster.Serving, cluster.Terminating),
		service("timed", 5, 600, ready, ready, ready),
	} {
		objects = append(objects, s...)
	}
	onOVN(t, objects...)
	const connections = 24
	for _, prefix := range []string{"10.96.0.%d", "[fd02::%d]", "192.0.2.%d", "[2001:db8::%d]", "198.51.100.%d", "[2001:db8:1::%d]"} {
		vip := func(n int) string { return fmt.Sprintf(prefix, n) + ":80" }
		for _, network := range []string{"tcp", "udp"} {
			testkit.Eventually(t, "an answer from "+network+" "+vip(1), func() string {
				if got := ask(t, network, vip(1), 1); got["s1"]+got["s2"]+got["s3"] == 0 {
					return fmt.Sprint(got)
				}
				return ""
			})
			// That one of three is never chosen in 24 fair choices has odds of 1 in 5,000.
			if got := ask(t, network, vip(1), 4*connections); len(got) != 3 || got["s1"]+got["s2"]+got["s3"] != 4*connections {
				t.Errorf("%s %s is answered by %v, want all three", network, vip(1), got)
			}
			if got := ask(t, network, vip(2), connections); len(got) != 1 || got["s1"]+got["s2"]+got["s3"] != connections {
				t.Errorf("%s %s, with affinity, is answered by %v, want always the same", network, vip(2), got)
			}
			// The connection by which OVN learns of the client may be lost.
			askFor(t, network, vip(5), 1, 300*time.Millisecond)
			if got := ask(t, network, vip(5), connections); len(got) != 1 || got["s1"]+got["s2"]+got["s3"] != connections {
				t.Errorf("%s %s, with affinity for a time, is answered by %v, want always the same", network, vip(5), got)
			}
			if got := ask(t, network, vip(3), 2*connections); len(got) != 2 || got["s1"]+got["s3"] != 2*connections {
				t.Errorf("%s %s is answered by %v, want s1 and s3, which terminate and serve", network, vip(3), got)
			}
			if got := ask(t, network, vip(4), 2); got["connection refused"] != 2 {
				t.Errorf("%s %s is answered by %v, want refusal", network, vip(4), got)
			}
		}
	}
	if n := strings.TrimSpace(testkit.Run(t, "ovs-appctl", "coverage/read-counter", "datapath_drop_recirc_error")); n != "0" {
		t.Errorf("%s packets were recirculated too often", n)
	}
}
