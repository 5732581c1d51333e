package service_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A UDP flow whose backend was removed goes to another backend with its next packet, although connection tracking still
// has the old connection.
func TestUDPFlowsMove(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	servers := []string{"s1", "s2"}
	web := func(local bool, endpoints ...int) []cluster.Object {
		s := &cluster.Service{Name: named("web"), Ports: []cluster.ServicePort{{Protocol: cluster.UDP, Port: 80}},
			InternalLocal: local,
			ClusterIPs:    []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd02::1")}}
		e := &cluster.EndpointSlice{Name: named("web"), Service: "web",
			Ports: []cluster.EndpointPort{{Protocol: cluster.UDP, Port: 8080}}}
		for _, i := range endpoints {
			for _, a := range podAddrs(0, i) {
				e.Endpoints = append(e.Endpoints, cluster.Endpoint{Addr: a, Node: "n1",
					Conditions: cluster.Ready | cluster.Serving})
			}
		}
		return []cluster.Object{s, e}
	}
	onOVN(t, []*cluster.Node{{Name: "n1"}}, [][]string{servers}, func(b *bed) {
		for _, local := range []bool{false, true} {
			b.set(web(local, 1, 2)...)
			var flows []*flow
			for _, vip := range webVIPs() {
				for _, s := range servers {
					flows = append(flows, b.flowTo(vip, s))
				}
			}
			for i, stays := range servers { // the other goes, and comes back
				b.set(web(local, 1+i)...)
				b.takenIn(stays)
				b.answeredBy(flows, stays)
				b.set(web(local, 1, 2)...)
				b.answeredBy(flows, stays)
			}
			b.set(web(local)...)
			b.takenIn(refusal)
			b.answeredBy(flows, "refused")
			for _, f := range flows {
				f.c.Close()
			}
		}
	})
}

// flow is a UDP socket of the client.
type flow struct {
	name string
	c    net.Conn
}

// flowTo is a flow whose packets reach a server.
func (b *bed) flowTo(vip, server string) *flow {
	b.Helper()
	var f *flow
	testkit.Eventually(b.T, "a flow to "+vip+" that "+server+" answers", func() string {
		var c net.Conn
		err := testkit.InNetns(client(0), func() (err error) {
			c, err = net.Dial("udp", vip)
			return err
		})
		if err != nil {
			return err.Error()
		}
		f = &flow{fmt.Sprintf("UDP %s to %s", c.LocalAddr(), vip), c}
		if got := f.ask(); got != server {
			c.Close()
			return "got " + got
		}
		return ""
	})
	return f
}

// ask is the server that answers the flow's next packet.
func (f *flow) ask() string {
	who, err := question(f.c, "udp", time.Second)
	if err != nil {
		return err.Error()[strings.LastIndex(err.Error(), " ")+1:]
	}
	return strings.TrimSpace(who)
}

func webVIPs() []string { return []string{"10.96.0.1:80", "[fd02::1]:80"} }

// takenIn waits until one server answers all new flows, and Open vSwitch has revalidated its cached flows of the
// others. Before that, a cached flow may still take a packet of an old connection to the old backend.
func (b *bed) takenIn(server string) {
	b.Helper()
	for _, vip := range webVIPs() {
		testkit.Eventually(b.T, "new flows to "+vip, func() string {
			if got := ask(b.T, client(0), "udp", vip, 16); got[server] != 16 {
				return fmt.Sprint(got)
			}
			return ""
		})
	}
	for _, n := range b.nodes {
		n.Run(b.T, "ovs-appctl", "revalidator/wait")
	}
}

// answeredBy checks that a server answers several packets of each flow.
func (b *bed) answeredBy(flows []*flow, server string) {
	b.Helper()
	for _, f := range flows {
		for range 5 {
			if got := f.ask(); got != server {
				b.Fatalf("%s is answered by %s, want %s", f.name, got, server)
			}
		}
	}
}
