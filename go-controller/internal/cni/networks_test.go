package cni_test

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// tenant is the pod web with two further interfaces: one with all that an attachment can have, and one in a network
// without subnets, for larger packets than the node's other pods have.
func tenant() pod {
	route := func(dest, nextHop string) annotation.Route {
		return annotation.Route{Dest: netip.MustParsePrefix(dest), NextHop: netip.MustParseAddr(nextHop)}
	}
	p := web()
	p.further = map[string]annotation.PodNetwork{
		"shop.blue/net1": {
			IPs: []netip.Prefix{netip.MustParsePrefix("10.99.0.3/24"), netip.MustParsePrefix("fd99::3/64")},
			MAC: ipnet.MAC{0x0a, 0x58, 0x0a, 0x63, 0, 3}, MTU: 1300,
			Routes: []annotation.Route{route("10.99.0.0/16", "10.99.0.1"), route("fd99::/48", "fd99::1")},
		},
		"shop.lan/net2": {MAC: ipnet.MAC{2, 0, 0, 0, 0, 9}, MTU: 1700},
	}
	return p
}

// tenantIDs are the attachments of a container of that pod, in their order.
func tenantIDs(container string) []string {
	return []string{container, names.AttachmentID(container, "net1"), names.AttachmentID(container, "net2")}
}

// addTenant is the ADD of that pod, whose ports are marked as installed.
func (b *bed) addTenant(t *testing.T) call {
	t.Helper()
	p := tenant()
	b.create(t, p, true)
	a := add(p, idA, netns(t, "web"))
	for _, id := range tenantIDs(idA) {
		install(t, id)
	}
	return a
}

// furtherState is what a container sees of the further interfaces.
const furtherState = `for i in net1 net2; do ip -br link show dev $i | cut -d@ -f1
ip addr show dev $i scope global | grep inet
cat /sys/class/net/$i/address /sys/class/net/$i/mtu; ip -4 route show dev $i; ip -6 route show dev $i | grep -v fe80::
ethtool -k $i | grep ^tx-checksumming
grep -h . /proc/sys/net/ipv6/conf/$i/accept_ra /proc/sys/net/ipv6/conf/$i/autoconf; done; true`

const wantFurtherState = `net1
inet 10.99.0.3/24 brd 10.99.0.255 scope global net1
inet6 fd99::3/64 scope global nodad
0a:58:0a:63:00:03
1300
10.99.0.0/24 proto kernel scope link src 10.99.0.3
10.99.0.0/16 via 10.99.0.1
fd99::/64 proto kernel metric 256 pref medium
fd99::/48 via fd99::1 metric 1024 pref medium
tx-checksumming: off
0
0
net2
02:00:00:00:00:09
1700
tx-checksumming: off
0
0`

// The ADD that a runtime knows makes all interfaces of the annotation, with a real OVN. Its result has eth0 alone.
// CHECK compares all, DEL and GC remove all, also by another agent.
func TestFurtherInterfaces(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	b.startOVN(t, true)
	p := tenant()
	logicalPort(t, p)
	b.create(t, p, true)
	a := add(p, idA, netns(t, "web"))
	result := a.succeed(t)
	checkResult(t, result)
	var ofEth0 []string
	for line := range strings.Lines(inPod(t, "web")) {
		if !strings.Contains(line, "dev net") {
			ofEth0 = append(ofEth0, line)
		}
	}
	if got := strings.Join(ofEth0, ""); got != wantPodState {
		t.Errorf("in the pod:\n%s\nwant:\n%s", got, wantPodState)
	}
	got := lines(testkit.Run(t, "ip", "netns", "exec", "web", "sh", "-c", furtherState))
	if got = regexp.MustCompile(` valid_lft.*`).ReplaceAllString(got, ""); got != wantFurtherState {
		t.Errorf("of further interfaces in the pod:\n%s\nwant:\n%s", got, wantFurtherState)
	}
	ids := tenantIDs(idA)
	for i, want := range []string{
		`{attached_mac="0a:58:0a:63:00:03", iface-id=shop.blue_default_web_net1, iface-id-ver=uid-web, ` +
			`ip_addresses="10.99.0.3/24,fd99::3/64", ovn-installed="true", `,
		`{attached_mac="02:00:00:00:00:09", iface-id=shop.lan_default_web_net2, iface-id-ver=uid-web, ` +
			`ip_addresses="", ovn-installed="true", `,
	} {
		have := testkit.Run(t, "ovs-vsctl", "get", "interface", names.HostVeth(ids[i+1]), "external_ids")
		if !strings.HasPrefix(have, want) || !strings.Contains(have, `sandbox="`+ids[i+1]+`"`) {
			t.Errorf("external_ids %s\nwant %s and the sandbox %s", have, want, ids[i+1])
		}
	}
	check := a.as(protocol.Check).after(result)
	check.succeed(t)
	a.fail(t, protocol.CodeInvalidEnv, "CNI_IFNAME is taken")
	check.succeed(t) // the refused ADD has touched nothing
	gc := call{command: protocol.GC, version: "1.1.0"}
	gc.extra = map[string]any{"cni.dev/valid-attachments": []map[string]string{{"containerID": idA, "ifname": "eth0"}}}
	gc.succeed(t)
	check.succeed(t)
	nothing := func(after string) {
		t.Helper()
		if got := left(t) + testkit.Run(t, "ip", "-n", "web", "-br", "link", "show", "type", "veth"); got != "" {
			t.Errorf("left after %s:\n%s", after, got)
		}
	}
	for range 3 {
		a.as(protocol.Del).succeed(t)
		nothing(protocol.Del)
	}
	check.fail(t, protocol.CodeCheck, "interface "+names.HostVeth(ids[2])+" is not on the node",
		"interface net1 is not in the container", "interface "+names.HostVeth(ids[1])+" is not in Open vSwitch")
	for command, last := range map[string]call{protocol.Del: a.as(protocol.Del), protocol.GC: gc} {
		a.succeed(t)
		b.stop()
		b.startServer(t, func(*server.Server) {})
		last.extra = map[string]any{"cni.dev/valid-attachments": []any{}}
		last.succeed(t)
		nothing(command + " by another agent")
	}
	a.succeed(t)
	testkit.Run(t, "ip", "netns", "del", "web")
	a.as(protocol.Del).succeed(t)
	if got := left(t); got != "" {
		t.Errorf("left of a container without its namespace:\n%s", got)
	}
}

// A pod with two interfaces in one network has that network's routes by each of them. The first one's are preferred.
func TestTwoInterfacesInANetwork(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	p := tenant()
	again := p.further["shop.blue/net1"]
	again.IPs = []netip.Prefix{netip.MustParsePrefix("10.99.0.4/24"), netip.MustParsePrefix("fd99::4/64")}
	again.MAC = ipnet.MAC{0x0a, 0x58, 0x0a, 0x63, 0, 4}
	p.further["shop.blue/net3"] = again
	b.create(t, p, true)
	a := add(p, idA, netns(t, "web"))
	for _, id := range append(tenantIDs(idA), names.AttachmentID(idA, "net3")) {
		install(t, id)
	}
	a.as(protocol.Check).after(a.succeed(t)).succeed(t)
	for dest, metric := range map[string]string{"10.99.0.0/16": "", "fd99::/48": " metric 1024"} {
		next, family := "10.99.0.1", "-4"
		if strings.Contains(dest, ":") {
			next, family = "fd99::1", "-6"
		}
		got := testkit.Run(t, "ip", "-n", "web", family, "route", "show", dest, "via", next)
		if want := "^" + dest + " dev net1" + metric + ".*\n" + dest + ` dev net3 metric \d{4} .*\n$`; !regexp.MustCompile(
			want).MatchString(got) {
			t.Errorf("routes\n%s\nwant\n%s", got, want)
		}
	}
}

// All ports are there before ADD waits for the first one's flows. The interfaces come in the order of their names.
func TestAllPortsBeforeTheFirstWait(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	b.stop()
	var reached []string
	b.startServer(t, func(s *server.Server) { s.Reached = func(step string) { reached = append(reached, step) } })
	p := tenant()
	p.further["shop.lan/net10"] = annotation.PodNetwork{MAC: ipnet.MAC{2, 0, 0, 0, 0, 10}}
	b.create(t, p, true)
	a := add(p, idA, netns(t, "web"))
	cmd := a.cmd(t.Context(), t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ids := append(tenantIDs(idA), names.AttachmentID(idA, "net10"))
	for _, id := range slices.Backward(ids) { // the first one's flows come last
		testkit.Run(t, "ovs-vsctl", "--timeout=20", "wait-until", "interface", names.HostVeth(id), "ofport>0", "--", "set",
			"interface", names.HostVeth(id), "external_ids:ovn-installed=true")
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	b.stop()
	var want []string
	for range ids {
		want = append(want, server.Steps()[:4]...)
	}
	want = append(want, slices.Repeat([]string{server.StepPort}, 4)...)
	want = append(want, slices.Repeat([]string{server.StepFlows}, 4)...)
	want = append(want, server.StepAnnounced, server.StepAnswered)
	if !slices.Equal(reached, want) {
		t.Errorf("steps\n%q, want\n%q", reached, want)
	}
	// The kernel numbers links as they come.
	order := regexp.MustCompile(`\d+: (\w+)@`).FindAllStringSubmatch(testkit.Run(t, "ip", "-n", "web", "-o", "link"), -1)
	var got []string
	for _, m := range order {
		got = append(got, m[1])
	}
	if !slices.Equal(got, []string{"eth0", "net1", "net2", "net10"}) {
		t.Errorf("interfaces %v, want them in the order of their names", got)
	}
}

// CHECK sees each damage of a further interface, and nothing once it is repaired.
func TestCheckSeesDamageOfFurtherInterfaces(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	a := b.addTenant(t)
	result := a.succeed(t)
	check := a.as(protocol.Check).after(result)
	check.succeed(t)
	const set = "ovs-vsctl set interface HOST external_ids:"
	for _, d := range []struct{ damage, repair, want string }{
		{"ip -n web addr del 10.99.0.3/24 dev net1",
			"ip -n web addr add 10.99.0.3/24 dev net1; ip -n web route add 10.99.0.0/16 via 10.99.0.1",
			"address 10.99.0.3/24 is not on net1"},
		{"ip -n web -6 route del fd99::/48", "ip -n web -6 route add fd99::/48 via fd99::1",
			"route fd99::/48 via fd99::1 is not in the container"},
		{"ip -n web link set net2 mtu 1442", "ip -n web link set net2 mtu 1700", "MTU of net2 is 1442, want 1700"},
		{"ip -n web link set net2 down", "ip -n web link set net2 up", "interface net2 in the container is down"},
		{"ip link set HOST down", "ip link set HOST up", "interface HOST is down"},
		{set + "iface-id=x", set + "iface-id=shop.lan_default_web_net2", "external_ids:iface-id="},
		{set + "ovn-installed=false", set + "ovn-installed=true", "external_ids:ovn-installed="},
		{"ovs-vsctl del-port HOST", "", "interface HOST is not in Open vSwitch"},
		{"ip link del HOST", "", "interface net2 is not in the container"},
	} {
		host := func(s string) string { return strings.ReplaceAll(s, "HOST", names.HostVeth(tenantIDs(idA)[2])) }
		testkit.Run(t, "sh", "-ec", host(d.damage))
		check.fail(t, protocol.CodeCheck, "the network of pod default/web is not as it was made", host(d.want))
		if d.repair != "" {
			testkit.Run(t, "sh", "-ec", host(d.repair))
			check.succeed(t)
		}
	}
	b.annotate(t, tenant(), "{")
	testkit.Eventually(t, "CHECK says that it can't compare", func() string {
		_, err := check.run(t)
		if err == nil || !strings.Contains(err.Error(), "the further interfaces can't be compared") {
			return "it says something else"
		}
		return ""
	})
}

// An ADD of which one further interface fails is undone as a whole, and says which one it is.
func TestFurtherInterfaceFails(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	b.startOVN(t, true)
	p := tenant()
	lan := p.further["shop.lan/net2"]
	delete(p.further, "shop.lan/net2")
	logicalPort(t, p)
	p.further["shop.lan/net2"] = lan
	b.create(t, p, true)
	a := add(p, idA, netns(t, "web"))
	undone := func() {
		t.Helper()
		if got := left(t); got != "" {
			t.Errorf("left on the node:\n%s", got)
		}
		if got := testkit.Run(t, "ip", "-n", "web", "-br", "link", "show", "type", "veth"); got != "" {
			t.Errorf("left in the pod:\n%s", got)
		}
	}
	testkit.Run(t, "ip", "-n", "web", "link", "add", "net2", "type", "bridge")
	a.fail(t, protocol.CodeInterface, "making the further interface net2 of pod default/web",
		"interface exists in the container: net2")
	undone()
	testkit.Run(t, "ip", "-n", "web", "link", "del", "net2")

	// The annotation has a network that the pod is not in: nobody has made a port for it.
	b.stop()
	b.startServer(t, func(s *server.Server) { s.Timeout = 2 * time.Second })
	a.fail(t, protocol.CodeTryAgain, "OVN has not set up the port of pod default/web",
		"has no Port_Binding shop.lan_default_web_net2")
	undone()

	for entry, want := range map[string]string{
		`"blue/eth0"`:            `entry "blue/eth0": the pod has an interface of that name already`,
		`"blue/../../etc"`:       `entry "blue/../../etc": want 1 to 15 letters`,
		`"blue/net%d"`:           `entry "blue/net%d": want 1 to 15 letters`,
		`"a_default_web/net1"`:   `entry "a_default_web/net1": want a DNS subdomain`,
		`"shop.blue/net1","x":7`: "JSON of another form",
	} {
		key, rest, _ := strings.Cut(entry, ",")
		if rest != "" {
			rest += ","
		}
		b.annotate(t, p, `{`+rest+key+`:{"mac_address":"02:00:00:00:00:09"},`+strings.TrimPrefix(web().annotation(), "{"))
		a.fail(t, protocol.CodeTryAgain, "no address for pod default/web", "the annotation of pod default/web is refused",
			want, "ovnkube master")
		undone()
	}
}

// An ADD ends when the master takes a further network away meanwhile.
func TestFurtherNetworkChangesDuringAdd(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, time.Hour)
	p := tenant()
	b.create(t, p, true)
	a := add(p, idA, netns(t, "web"))
	var out strings.Builder
	cmd := a.cmd(t.Context(), t)
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, id := range tenantIDs(idA) {
		testkit.Run(t, "ovs-vsctl", "--timeout=20", "wait-until", "interface", names.HostVeth(id), "ofport>0")
	}
	// A GC that does not know the container leaves the interfaces to the ADD that is at work.
	gc := call{command: protocol.GC, version: "1.1.0", extra: map[string]any{"cni.dev/valid-attachments": []any{}}}
	gc.succeed(t)
	if got := strings.Count(testkit.Run(t, "ip", "-br", "link", "show", "type", "veth"), "@"); got != 3 {
		t.Errorf("%d interfaces after a GC during ADD, want 3", got)
	}
	b.annotate(t, p, web().annotation())
	if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "the pod's annotation was changed meanwhile") {
		t.Errorf("ADD: %v %s, want that the annotation was changed", err, out.String())
	}
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}
}

// Whatever step of an ADD with further interfaces the plugin is killed after, the agent undoes it.
func TestPluginIsKilledWithFurtherInterfaces(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	killPluginAtEachStep(t, tenant(), 3*4+3+3+1)
}

// While Open vSwitch is away, DEL removes the pairs, and the ports as soon as it is back.
func TestNoOpenVSwitchWithFurtherInterfaces(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	a := b.addTenant(t)
	a.succeed(t)
	b.vs.StopDB(t)
	a.as(protocol.Del).succeed(t)
	a.as(protocol.Del).succeed(t)
	if got := testkit.Run(t, "ip", "-br", "link", "show", "type", "veth"); got != "" {
		t.Errorf("left in the kernel: %s", got)
	}
	b.vs.StartDB(t)
	testkit.Eventually(t, "nothing is left", func() string { return left(t) })
}
