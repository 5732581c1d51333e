package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// fakePods has pods and no changes.
type fakePods []local.Pod

func (f fakePods) WaitPod(_ context.Context, namespace, name string, accept func(local.Pod, bool) bool) error {
	for _, p := range f {
		if p.Namespace == namespace && p.Name == name {
			accept(p, true)
			return nil
		}
	}
	accept(local.Pod{}, false)
	return nil
}

func (f fakePods) LocalPods() []local.Pod { return f }

// fakeNode is an agent whose node has subnets.
type fakeNode []netip.Prefix

func (n fakeNode) Settings(context.Context) (Settings, error) {
	return Settings{NodeSubnets: annotation.SetNodeSubnets("",
		map[names.Network][]netip.Prefix{names.Own: n, "blue": n})}, nil
}

func (fakeNode) Missing() error { return nil }

func dualStack() fakeNode {
	return fakeNode{netip.MustParsePrefix("10.244.1.0/24"), netip.MustParsePrefix("fd01:0:0:1::/64")}
}

// annotated is a pod with the annotation that the master writes for a number.
func annotated(name string, created int64, number uint64, keys ...string) local.Pod {
	nets := map[string]annotation.PodNetwork{}
	for _, key := range append(keys, "default") {
		_, iface := names.EntryOf(key)
		nets[key] = subnet.Attachment(dualStack(), []uint64{number, number}, iface)
	}
	return local.Pod{Namespace: "default", Name: name, UID: "u-" + name, Created: created,
		Network: annotation.MarshalAttachments(nets)}
}

// eth0 is the request for the interface that Kubernetes itself asks for.
func eth0() *request { return requestOf(protocol.Request{ContainerID: "c", IfName: "eth0"}) }

// delegated is the request of another plugin for a further interface.
func delegated(network, iface string) *request {
	return requestOf(protocol.Request{ContainerID: "c", IfName: iface, Config: []byte(`{"network":"` + network + `"}`)})
}

// Who may create a pod may write its annotation. The agent wires the pod only with what the master could have written.
func TestHostileAnnotations(t *testing.T) {
	const mac, own = "0a:58:0a:f4:01:05", `"10.244.1.5/24","fd01:0:0:1::5/64"`
	network := func(ips, mac, gateways, more string) string {
		return `{"default":{"ip_addresses":[` + ips + `],"mac_address":"` + mac + `","gateway_ips":[` + gateways + `]` +
			more + `}}`
	}
	const routers = `"10.244.1.1","fd01:0:0:1::1"`
	for what, c := range map[string]struct{ network, refused string }{
		"the master's": {network(own, mac, routers, ""), ""},
		"another node's pods": {network(`"10.244.2.5/24","fd01:0:0:1::5/64"`, mac, routers, ""),
			"10.244.2.5/24 is not in the node's subnet 10.244.1.0/24"},
		"another node's, IPv6": {network(`"10.244.1.5/24","fd01:0:0:2::5/64"`, mac, routers, ""),
			"fd01:0:0:2::5/64 is not in the node's subnet fd01:0:0:1::/64"},
		"a wider network": {network(`"10.244.1.5/16","fd01:0:0:1::5/64"`, mac, routers, ""),
			"10.244.1.5/16 is not in the node's subnet"},
		"the router's": {network(`"10.244.1.1/24","fd01:0:0:1::5/64"`, mac, routers, ""),
			"10.244.1.1/24 is not one for pods"},
		"the router's, IPv6": {network(`"10.244.1.5/24","fd01:0:0:1::1/64"`, mac, routers, ""),
			"fd01:0:0:1::1/64 is not one for pods"},
		"the management port's": {network(`"10.244.1.2/24","fd01:0:0:1::5/64"`, mac, routers, ""),
			"10.244.1.2/24 is not one for pods"},
		"the broadcast address": {network(`"10.244.1.255/24","fd01:0:0:1::5/64"`, mac, routers, ""),
			"10.244.1.255/24 is not one for pods"},
		"the network's": {network(`"10.244.1.0/24","fd01:0:0:1::/64"`, mac, routers, ""),
			"10.244.1.0/24 is not one for pods"},
		"the host's": {network(`"172.18.0.3/16","fd01:0:0:1::5/64"`, mac, routers, ""),
			"172.18.0.3/16 is not in the node's subnet"},
		"one family only": {network(`"10.244.1.5/24"`, mac, `"10.244.1.1"`, ""),
			"want one address in each of the node's subnets"},
		"another MAC":     {network(own, "0a:58:0a:f4:01:01", routers, ""), "mac_address 0a:58:0a:f4:01:01"},
		"a multicast MAC": {network(own, "ff:ff:ff:ff:ff:ff", routers, ""), "mac_address ff:ff:ff:ff:ff:ff"},
		"another gateway": {network(own, mac, `"10.244.1.9","fd01:0:0:1::1"`, ""),
			"gateway_ips [10.244.1.9 fd01:0:0:1::1]"},
		"no gateway": {network(own, mac, "", ""),
			"want 0a:58:0a:f4:01:05, [10.244.1.1 fd01:0:0:1::1], no routes and no mtu"},
		"an MTU": {network(own, mac, routers, `,"mtu":1300`), "mtu 1300"},
		"a route": {network(own, mac, routers, `,"routes":[{"dest":"10.96.0.0/16","nextHop":"10.244.1.9"}]`),
			"routes [{10.96.0.0/16 10.244.1.9}]"},
		"a route, IPv6": {network(own, mac, routers, `,"routes":[{"dest":"fd02::/112","nextHop":"fd01:0:0:1::9"}]`),
			"routes [{fd02::/112 fd01:0:0:1::9}]"},
		"an older pod's": {network(`"10.244.1.9/24","fd01:0:0:1::9/64"`, "0a:58:0a:f4:01:09", routers, ""),
			"10.244.1.9 is the address of the older pod default/victim"},
		"an older pod's, IPv6": {network(`"10.244.1.5/24","fd01:0:0:1::9/64"`, mac, routers, ""),
			"fd01:0:0:1::9 is the address of the older pod default/victim"},
		"an older pod's that has eth0 alone": {network(`"10.244.1.11/24","fd01:0:0:1::5/64"`, "0a:58:0a:f4:01:0b", routers,
			""), "10.244.1.11 is the address of the older pod default/plain"},
		"a younger pod's": {network(`"10.244.1.12/24","fd01:0:0:1::c/64"`, "0a:58:0a:f4:01:0c", routers, ""),
			""},
		"a finished pod's": {network(`"10.244.1.13/24","fd01:0:0:1::d/64"`, "0a:58:0a:f4:01:0d", routers, ""),
			""},
		"no JSON": {"{", "not JSON"},
	} {
		t.Run(what, func(t *testing.T) {
			p := local.Pod{Namespace: "default", Name: "p", UID: "u-p", Created: 5, Network: c.network}
			finished := annotated("finished", 1, 13)
			finished.Released = true
			junk := annotated("junk", 1, 77)
			junk.Network = strings.Replace(annotated("junk", 1, 5, "default/x").Network, `"default":`, `"gone":`, 1)
			s := &Server{Node: dualStack(), Pods: fakePods{p, annotated("victim", 1, 9, "blue/net1"),
				annotated("plain", 1, 11), annotated("young", 9, 12), finished, junk,
				{Namespace: "default", Name: "broken", UID: "u-b", Network: "{"}}}
			_, err := s.networksOf(t.Context(), eth0(), p)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("error %v, want %q", err, c.refused)
			}
		})
	}
}

// What the master may write for another network is taken as it is, also if this node has no subnet there.
func TestFurtherAttachments(t *testing.T) {
	lan := annotation.PodNetwork{MAC: ipnet.MAC{2, 1, 2, 3, 4, 5}}
	layer3 := network("10.99.0.3/24", "fd99:0:0:1::3/64")
	layer3.MTU = 9000
	layer3.Routes = []annotation.Route{route("10.99.0.0/16", "10.99.0.1"), route("fd99::/48", "fd99:0:0:1::1")}
	p := annotated("p", 5, 5)
	nets := map[string]annotation.PodNetwork{"default": subnet.Attachment(dualStack(), []uint64{5, 5}, ""),
		"lan/net10": lan, "shop.blue/net2": layer3, "shop.blue/net1": network("10.244.1.0/24"), "lan/ext": lan}
	p.Network = annotation.MarshalAttachments(nets)
	s := &Server{Node: dualStack(), Pods: fakePods{p}}
	list, err := s.networksOf(t.Context(), eth0(), p)
	var got []string
	for _, a := range list {
		got = append(got, a.Key())
		if !cluster.SamePodNetwork(a.net, nets[a.Key()]) {
			t.Errorf("%s: %+v, want %+v", a.Key(), a.net, nets[a.Key()])
		}
	}
	if want := "default lan/ext shop.blue/net1 shop.blue/net2 lan/net10"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	list, err = s.networksOf(t.Context(), delegated("shop.blue", "net2"), p)
	if err != nil || len(list) != 1 || !cluster.SamePodNetwork(list[0].net, layer3) {
		t.Errorf("a delegated request: %+v, %v", list, err)
	}
}

// network is an attachment with these addresses.
func network(ips ...string) (n annotation.PodNetwork) {
	for _, ip := range ips {
		n.IPs = append(n.IPs, netip.MustParsePrefix(ip))
	}
	n.MAC = ipnet.MACFor(ipnet.Addrs(n.IPs))
	return n
}

func route(dest, nextHop string) annotation.Route {
	return annotation.Route{Dest: netip.MustParsePrefix(dest), NextHop: netip.MustParseAddr(nextHop)}
}

// The entry of another network is refused if the master can't have written it, or if the pod would lose the cluster's
// own network.
func TestHostileFurtherAttachments(t *testing.T) {
	change := func(f func(n *annotation.PodNetwork)) annotation.PodNetwork {
		n := network("10.99.0.3/24", "fd99::3/64")
		f(&n)
		return n
	}
	mac := func(first byte) annotation.PodNetwork {
		return change(func(n *annotation.PodNetwork) { n.MAC[0] = first })
	}
	routed := func(dest, nextHop string) annotation.PodNetwork {
		return change(func(n *annotation.PodNetwork) { n.Routes = []annotation.Route{route(dest, nextHop)} })
	}
	for what, c := range map[string]struct {
		net     annotation.PodNetwork
		refused string
	}{
		"the master's":   {routed("10.99.0.0/16", "10.99.0.1"), ""},
		"a group's MAC":  {mac(0x0b), "mac_address 0b:58:0a:63:00:03: want that of one host"},
		"a vendor's MAC": {mac(0x08), ""},
		"broadcast":      {mac(0xff), "want that of one host"},
		"a gateway": {change(func(n *annotation.PodNetwork) { n.Gateways = []netip.Addr{n.IPs[0].Addr()} }),
			"want none"},
		"a group":          {network("224.0.0.5/24"), "ip_addresses: 224.0.0.5/24 is not the address of a host"},
		"a group, IPv6":    {network("ff02::5/64"), "ff02::5/64 is not the address of a host"},
		"loopback":         {network("127.0.0.1/8"), "127.0.0.1/8 is not the address of a host"},
		"broadcasts":       {network("255.255.255.255/32"), "is not the address of a host"},
		"no address":       {network("0.0.0.0/0"), "0.0.0.0/0 is not the address of a host"},
		"a whole family":   {network("10.99.0.3/0"), "ip_addresses: 10.99.0.3/0: want the length of a subnet's prefix"},
		"a default route":  {routed("0.0.0.0/0", "10.99.0.1"), "the pod's default routes are in the cluster's own network"},
		"the same, IPv6":   {routed("::/0", "fd99::1"), "the pod's default routes are in the cluster's own network"},
		"host bits":        {routed("10.99.0.7/16", "10.99.0.1"), "dest has host bits set, want 10.99.0.0/16"},
		"another next hop": {routed("10.99.0.0/16", "10.98.0.1"), "want a next hop of the same family in the interface's"},
		"another family":   {routed("10.99.0.0/16", "fd99::1"), "want a next hop of the same family in the interface's"},
		"through itself":   {routed("10.99.0.0/16", "10.99.0.3"), "the next hop is the pod itself"},
		"its own subnet":   {routed("10.99.0.0/24", "10.99.0.1"), "dest is the interface's own subnet"},
		"eth0's subnet":    {routed("10.244.1.0/24", "10.99.0.1"), "dest overlaps the node's subnet 10.244.1.0/24"},
		"all nodes'":       {routed("10.244.0.0/16", "10.99.0.1"), "dest overlaps the node's subnet 10.244.1.0/24"},
		"half of IPv4":     {routed("0.0.0.0/1", "10.99.0.1"), "dest overlaps the node's subnet 10.244.1.0/24"},
		"eth0's router":    {routed("fd01:0:0:1::1/128", "fd99::1"), "dest overlaps the node's subnet fd01:0:0:1::/64"},
		"an older pod's":   {network("10.244.1.9/24"), "10.244.1.9 is the address of the older pod default/victim"},
		"a younger pod's":  {network("10.244.1.12/24"), ""},
		"of the own network": {network("10.244.1.5/24"),
			""}, // in another network it is another address
	} {
		t.Run(what, func(t *testing.T) {
			p := annotated("p", 5, 5)
			p.Network = annotation.MarshalAttachments(map[string]annotation.PodNetwork{
				"default": subnet.Attachment(dualStack(), []uint64{5, 5}, ""), "blue/net1": c.net})
			s := &Server{Node: dualStack(), Pods: fakePods{p, annotated("victim", 1, 9, "blue/net7"),
				annotated("young", 9, 12, "blue/net1"), annotated("elsewhere", 1, 3, "green/net1")}}
			for _, r := range []*request{eth0(), delegated("blue", "net1")} {
				_, err := s.networksOf(t.Context(), r, p)
				if c.refused == "" && err != nil || c.refused != "" && (err == nil ||
					!strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), `entry "blue/net1"`)) {
					t.Errorf("delegated %v: error %v, want %q", r.delegated, err, c.refused)
				}
			}
		})
	}
}

// The names of networks and interfaces are checked before anything is made: they become names in OVN, Open vSwitch and
// the kernel.
func TestHostileKeys(t *testing.T) {
	lan := `{"mac_address":"02:01:02:03:04:05"}`
	with := func(keys ...string) local.Pod {
		p := annotated("p", 5, 5)
		for _, k := range keys {
			quoted, _ := json.Marshal(k)
			p.Network = strings.TrimSuffix(p.Network, "}") + "," + string(quoted) + ":" + lan + "}"
		}
		return p
	}
	many := func(n int) (keys []string) {
		for i := range n {
			keys = append(keys, fmt.Sprintf("lan/net%d", i))
		}
		return keys
	}
	for refused, keys := range map[string][]string{
		"": many(16),
		"it has 17 further interfaces, want at most 16":                 many(17),
		`entry "blue": ip_addresses: the list is empty`:                 {"blue"},
		`entry "default/net1": want NETWORK/INTERFACE`:                  {"default/net1"},
		`entry "blue/": ip_addresses: the list is empty`:                {"blue/"},
		`entry "/net1": want a DNS subdomain`:                           {"/net1"},
		`entry "a_b/net1": want a DNS subdomain`:                        {"a_b/net1"},
		`entry "Blue/net1": want a DNS subdomain`:                       {"Blue/net1"},
		`entry "blue/net1/net2": want 1 to 15 letters`:                  {"blue/net1/net2"},
		`entry "blue/0123456789abcdef": want 1 to 15 letters`:           {"blue/0123456789abcdef"},
		`entry "blue/net 1": want 1 to 15 letters`:                      {"blue/net 1"},
		`entry "blue/net%d": want 1 to 15 letters`:                      {"blue/net%d"},
		`entry "blue/net:1": want 1 to 15 letters`:                      {"blue/net:1"},
		`entry "blue/nét": want 1 to 15 letters`:                        {"blue/nét"},
		`entry "blue/n\x00": want 1 to 15 letters`:                      {"blue/n\x00"},
		`entry "blue/.": want 1 to 15 letters`:                          {"blue/."},
		`entry "blue/..": want 1 to 15 letters`:                         {"blue/.."},
		`entry "blue/lo": the pod has an interface of that name`:        {"blue/lo"},
		`entry "blue/eth0": the pod has an interface of that name`:      {"blue/eth0"},
		`entry "blue/eth7": the pod has an interface of that name`:      {"blue/eth7"}, // the runtime's
		`entry "blue/all": want 1 to 15 letters`:                        {"blue/all"},
		`entry "blue/default": want 1 to 15 letters`:                    {"blue/default"},
		`entries "blue/net1" and "red/net1" have the same interface`:    {"red/net1", "lan/net2", "blue/net1"},
		`entry "` + strings.Repeat("b", 100) + `...": want a DNS subdo`: {strings.Repeat("b", 300) + "/net1"},
	} {
		r := eth0()
		r.IfName = "eth7"
		p := with(keys...)
		s := &Server{Node: dualStack(), Pods: fakePods{p}}
		list, err := s.networksOf(t.Context(), r, p)
		if refused == "" && (err != nil || len(list) != 17) ||
			refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
			t.Errorf("%q: %d attachments, error %v, want %q", keys, len(list), err, refused)
		}
	}
	p := with()
	p.Network = strings.Replace(p.Network, `{"default"`, `{"blue":{"ip_addresses":["10.99.0.3/24"],`+
		`"mac_address":"0a:58:0a:63:00:03"},"default"`, 1)
	if _, err := (&Server{Node: dualStack()}).networksOf(t.Context(), eth0(), p); err == nil ||
		!strings.Contains(err.Error(), `entry "blue": want NETWORK/INTERFACE`) {
		t.Errorf("an entry without an interface: %v", err)
	}
	for _, r := range []*request{delegated("default", "net1"), delegated("a_b", "net1"), delegated("blue", "eth0"),
		delegated("blue", "net1")} {
		p := with(r.in.Key())
		s := &Server{Node: dualStack(), Pods: fakePods{p}}
		if _, err := s.networksOf(t.Context(), r, p); (err == nil) != (r.in.Key() == "blue/net1") {
			t.Errorf("delegated %s: %v", r.in.Key(), err)
		}
	}
	if _, err := (&Server{Node: dualStack(), Pods: fakePods{}}).networksOf(t.Context(), delegated("blue", "net2"),
		with("blue/net1")); err == nil || !strings.Contains(err.Error(), `it has no entry "blue/net2"`) {
		t.Errorf("an entry that is not there: %v", err)
	}
}

// Interfaces are made in the order of their names, in which numbers count by their value.
func TestOrderOfInterfaces(t *testing.T) {
	want := []string{"eth1", "net", "net0", "net1", "net02", "net2", "net10", "net99999999999", "net.1", "net1a", "x1y2"}
	for seed := range uint64(20) {
		got := slices.Clone(want)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, compareInterfaces)
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// Before the answer the agent looks again: the pod may be gone, or the master may have written something else.
func TestConfirm(t *testing.T) {
	const net1 = "blue/net1"
	made := []attached{{cluster.Attachment{Network: names.Own}, subnet.Attachment(dualStack(), []uint64{5, 5}, "")},
		{cluster.Attachment{Network: "blue", Interface: "net1"}, subnet.Attachment(dualStack(), []uint64{5, 5}, "net1")}}
	anew := annotated("p", 5, 5, net1)
	anew.UID = "another"
	larger := annotated("p", 5, 5, net1)
	larger.Network = strings.Replace(larger.Network, `"role":"secondary"`, `"mtu":1300,"role":"secondary"`, 1)
	for what, c := range map[string]struct {
		now  fakePods
		want string
	}{
		"nothing changed":       {fakePods{annotated("p", 5, 5, net1)}, ""},
		"gone":                  {nil, errPodGone.Error()},
		"made anew":             {fakePods{anew}, errPodGone.Error()},
		"other addresses":       {fakePods{annotated("p", 5, 6, net1)}, errNetworkChanged.Error()},
		"another MTU":           {fakePods{larger}, errNetworkChanged.Error()},
		"no further interface":  {fakePods{annotated("p", 5, 5)}, errNetworkChanged.Error()},
		"one more interface":    {fakePods{annotated("p", 5, 5, net1, "green/net2")}, errNetworkChanged.Error()},
		"in another network":    {fakePods{annotated("p", 5, 5, "green/net1")}, errNetworkChanged.Error()},
		"at another interface":  {fakePods{annotated("p", 5, 5, "blue/net2")}, errNetworkChanged.Error()},
		"an older pod":          {fakePods{annotated("p", 5, 5, net1), annotated("o", 1, 5)}, "of the older pod default/o"},
		"an older pod in blue":  {fakePods{annotated("p", 5, 5, net1), older()}, "of the older pod default/o"},
		"no annotation":         {fakePods{{Namespace: "default", Name: "p", UID: "u-p"}}, "it has no entry"},
		"an entry of our enemy": {fakePods{annotated("p", 5, 5, net1, "blue/eth0")}, "has an interface of that name"},
	} {
		t.Run(what, func(t *testing.T) {
			s := &Server{Node: dualStack(), Pods: c.now}
			err := s.confirm(t.Context(), eth0(), podRef{"default", "p", "u-p"}, annotated("p", 5, 5), made)
			var e *protocol.Error
			if c.want == "" && err != nil || c.want != "" &&
				(!errors.As(err, &e) || e.Code != protocol.CodeTryAgain || !strings.Contains(e.Details, c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// older is an older pod, which has number 5 in the network blue only.
func older() local.Pod {
	p := annotated("o", 1, 6)
	p.Network = annotation.MarshalAttachments(map[string]annotation.PodNetwork{
		"default":   subnet.Attachment(dualStack(), []uint64{6, 6}, ""),
		"blue/net3": subnet.Attachment(dualStack(), []uint64{5, 5}, "net3")})
	return p
}
