package nicmove

import (
	"flag"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

var update = flag.Bool("update", false, "write the golden files anew")

func addr(prefix string) Addr {
	return Addr{Link: "eth0", Prefix: netip.MustParsePrefix(prefix), Valid: Forever, Preferred: Forever}
}

func route(dest, via string, metric uint32) Route {
	r := Route{Dest: netip.MustParsePrefix(dest), Table: tableMain, Type: typeUnicast, Protocol: 4, Metric: metric,
		Hops: []Hop{{Link: "eth0"}}}
	if via != "" {
		r.Hops[0].Via = netip.MustParseAddr(via)
	}
	return r
}

// connected returns the route that the kernel makes for an address.
func connected(a Addr) Route {
	r := route(a.Prefix.Masked().String(), "", 0)
	r.Protocol, r.Hops[0].Link = protoKernel, a.Link
	if a.Prefix.Addr().Is4() {
		r.Scope, r.Src = 253, a.Prefix.Addr()
	} else {
		r.Metric = 256
	}
	return r
}

// nic is a NIC with an item of every kind.
func nic() Device {
	lease := addr("192.0.2.7/24")
	lease.Valid, lease.Preferred, lease.Label = 3600, 1800, "eth0:dhcp"
	slaac := addr("2001:db8::7/64")
	slaac.Valid, slaac.Preferred, slaac.Flags, slaac.Protocol = 7200, 3600, flagManageTempAddr, 2
	silent := addr("198.51.100.7/24")
	silent.Flags = flagNoPrefixRoute
	local := addr("fe80::7/64")
	local.Scope = 253
	learned := route("::/0", "fe80::1", 1024)
	learned.Protocol, learned.Expires = protoRA, 1800
	tuned := route("0.0.0.0/0", "192.0.2.1", 50)
	tuned.Src, tuned.Metrics = silent.Prefix.Addr(), []Attr{{2, "14050000"}}
	shared := route("203.0.113.0/24", "192.0.2.2", 0)
	shared.Hops = []Hop{{Via: netip.MustParseAddr("192.0.2.2"), Link: "eth0", Weight: 1},
		{Via: netip.MustParseAddr("10.9.9.9"), Link: "eth1", Weight: 2}}
	far := route("10.0.0.0/8", "100.64.0.1", 0)
	far.Hops[0].OnLink, far.Table = true, 100
	return Device{
		Link:   hostplan.Link{Name: "eth0", MAC: ipnet.MAC{0x0a, 0x58, 0, 0, 0, 7}, MTU: 9000, Up: true},
		Addrs:  []Addr{lease, silent, slaac, local},
		Routes: []Route{tuned, connected(lease), shared, far, connected(slaac), connected(local), learned},
		Rules:  []Rule{{Priority: 500, From: netip.MustParsePrefix("192.0.2.0/24"), IIF: "eth0", Action: 1, Table: 100}},
		Neighbours: []Neighbour{
			{Neighbour: hostplan.Neighbour{Link: "eth0", IP: netip.MustParseAddr("192.0.2.9"), MAC: ipnet.MAC{2, 0, 0, 0, 0,
				9}}},
			{Neighbour: hostplan.Neighbour{Link: "eth0", IP: netip.MustParseAddr("2001:db8::9")}, Proxy: true},
		},
		Sysctls: map[string]string{disableIPv6: "0", addrGenMode: "0", "ipv6/accept_ra": "2", "ipv4/rp_filter": "2",
			raMetric: "1024"},
		Offloads: map[string]bool{"gro": true, "lro": false},
	}
}

func defaults() map[string]string {
	return map[string]string{disableIPv6: "0", addrGenMode: "0", "ipv6/accept_ra": "1", "ipv4/rp_filter": "0",
		raMetric: "1024"}
}

// world imitates the kernel and Open vSwitch as far as a plan depends on them: routes come and go with addresses,
// bridges and IPv6.
type world struct{ Host }

func newWorld() *world {
	return &world{Host{NIC: nic(), Defaults: defaults()}}
}

func (w *world) device(link string) *Device {
	if link == "eth0" {
		return &w.NIC
	}
	return &w.Bridge
}

func (w *world) make(t *testing.T, s Step) {
	t.Helper()
	thing, remove := s.Want, s.Want == nil
	if remove {
		thing = s.Have
	}
	switch x := thing.(type) {
	case Bridge:
		w.makeBridge(x, remove)
	case Port:
		w.PortOn = ""
		if !remove {
			w.PortOn = x.Bridge
		}
	case Addr:
		w.makeAddr(w.device(x.Link), x, remove)
	case Route:
		for _, d := range []*Device{&w.NIC, &w.Bridge} {
			if old, ok := s.Have.(Route); ok {
				d.Routes = without(d.Routes, old.identity(), Route.identity)
			}
			if d.Exists() && x.Uses(d.Link.Name) && !remove {
				d.Routes = append(without(d.Routes, x.identity(), Route.identity), x)
			}
		}
	case Rule:
		d := w.device(x.IIF)
		d.Rules = without(d.Rules, x.String(), Rule.String)
		if !remove {
			d.Rules = append(d.Rules, x)
		}
	case Neighbour:
		d := w.device(x.Link)
		d.Neighbours = without(d.Neighbours, x.String(), Neighbour.String)
		if !remove {
			d.Neighbours = append(d.Neighbours, x)
		}
	case Offload:
		w.NIC.Offloads = maps.Clone(w.NIC.Offloads)
		w.NIC.Offloads[x.Name] = x.On
	case hostplan.IngressDrop:
		w.NIC.Drop = !remove
	case hostplan.Link:
		w.device(x.Name).Link = x
	case hostplan.Sysctl:
		w.makeSysctl(w.device(x.Link), x)
	default:
		t.Fatalf("a step of type %T", thing)
	}
}

func (w *world) makeBridge(b Bridge, remove bool) {
	w.Row, w.Bridge = Bridge{}, Device{}
	if !remove {
		w.Row = b
		w.Bridge = Device{Link: hostplan.Link{Name: b.Name, MAC: w.NIC.Link.MAC, MTU: b.MTU}, Sysctls: defaults()}
	}
}

func (w *world) makeAddr(d *Device, a Addr, remove bool) {
	d.Addrs = without(d.Addrs, a.Prefix.String(), func(a Addr) string { return a.Prefix.String() })
	if remove {
		d.Routes = slices.DeleteFunc(slices.Clone(d.Routes), a.connected)
		return
	}
	if a.Prefix.Addr().Is4() {
		d.Addrs = append(d.Addrs, a)
	} else {
		d.Addrs = append([]Addr{a}, d.Addrs...)
	}
	if a.Flags&flagNoPrefixRoute == 0 {
		d.Routes = append(without(d.Routes, connected(a).identity(), Route.identity), connected(a))
	}
}

func (w *world) makeSysctl(d *Device, s hostplan.Sysctl) {
	_, key, _ := strings.Cut(s.Path, "net/")
	key = strings.Replace(key, "conf/"+s.Link+"/", "", 1)
	d.Sysctls = maps.Clone(d.Sysctls)
	d.Sysctls[key] = s.Value
	if key == disableIPv6 && s.Value == "1" {
		d.Addrs = slices.DeleteFunc(slices.Clone(d.Addrs), func(a Addr) bool { return a.Prefix.Addr().Is6() })
		d.Routes = slices.DeleteFunc(slices.Clone(d.Routes), func(r Route) bool { return r.Dest.Addr().Is6() })
	}
}

func without[T any](list []T, key string, of func(T) string) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return of(v) == key })
}

// sorted is a device's text with sorted lines. Stand-ins are shown as the learned routes that they replace.
func sorted(d Device) string {
	text := strings.ReplaceAll(d.String(), "proto ra metric 1025", "proto ra metric 1024")
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func forward(w *world, datapath string) []Step {
	move := nic().Merged(w.NIC)
	return Forward(move, BridgeFor(nic().Link, "breth0", datapath), w.Host)
}

func back(w *world) []Step { return Back(nic(), w.Host) }

func TestGolden(t *testing.T) {
	for name, datapath := range map[string]string{"system": "system", "netdev": "netdev"} {
		w := newWorld()
		var b strings.Builder
		for _, part := range []struct {
			title string
			plan  func() []Step
		}{{"# Forward", func() []Step { return forward(w, datapath) }}, {"# Back", func() []Step { return back(w) }}} {
			b.WriteString(part.title + "\n")
			for _, s := range part.plan() {
				b.WriteString(s.String() + "\n")
				w.make(t, s)
			}
		}
		file := filepath.Join("testdata", name+".out.txt")
		if *update {
			if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != b.String() {
			t.Errorf("%v: the plan is\n%s\n%s has\n%s", err, b.String(), file, want)
		}
	}
}

// Wherever a move or a return is interrupted, both continuing and going back reach their goal, and the next plan is
// empty.
func TestFromEveryStep(t *testing.T) {
	for _, datapath := range []string{"system", "netdev"} {
		there := newWorld()
		all := forward(there, datapath)
		for _, s := range all {
			there.make(t, s)
		}
		moved := sorted(there.Bridge)
		if want := sorted(nic().On("breth0")); strings.ReplaceAll(moved, "offload",
			"") != strings.ReplaceAll(withoutOffloads(want), "offload", "") {
			t.Errorf("the bridge has\n%s\nwant\n%s", moved, want)
		}
		for n := range len(all) + 1 {
			w := newWorld()
			for _, s := range all[:n] {
				w.make(t, s)
			}
			if n > 0 {
				for range 2 {
					settle(t, w, "continuing", func() []Step { return forward(w, datapath) })
				}
				if got := sorted(w.Bridge); got != moved {
					t.Errorf("%s: continuing after %d steps the bridge has\n%s\nwant\n%s", datapath, n, got, moved)
				}
				w = newWorld()
				for _, s := range all[:n] {
					w.make(t, s)
				}
			}
			wayBack := back(w)
			settle(t, w, "going back", func() []Step { return back(w) })
			if got, want := sorted(w.NIC), sorted(nic()); got != want || w.Bridge.Exists() || w.PortOn != "" {
				t.Errorf("%s: going back after %d steps the NIC has\n%s\nwant\n%s", datapath, n, got, want)
			}
			if n == len(all) {
				backFromEveryStep(t, datapath, all, len(wayBack))
			}
		}
	}
}

func backFromEveryStep(t *testing.T, datapath string, all []Step, steps int) {
	t.Helper()
	for n := range steps {
		w := newWorld()
		for _, s := range all {
			w.make(t, s)
		}
		for _, s := range back(w)[:n] {
			w.make(t, s)
		}
		settle(t, w, "going back again", func() []Step { return back(w) })
		if got, want := sorted(w.NIC), sorted(nic()); got != want || w.Bridge.Exists() {
			t.Errorf("%s: going back again after %d steps the NIC has\n%s\nwant\n%s", datapath, n, got, want)
		}
	}
}

// settle executes plans until one is empty: the second, or at the latest the third.
func settle(t *testing.T, w *world, what string, plan func() []Step) {
	t.Helper()
	for range 3 {
		list := plan()
		if len(list) == 0 {
			return
		}
		for _, s := range list {
			w.make(t, s)
		}
	}
	if left := plan(); len(left) > 0 {
		t.Errorf("%s does not end: %v", what, left)
	}
}

func withoutOffloads(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "offload") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// Lifetimes run down, and expired addresses and routes are not restored. The bridge's lifetimes override those of the
// undo file.
func TestAged(t *testing.T) {
	old := nic().Aged(2000)
	if a := old.Addrs[0]; a.Valid != 1600 || a.Preferred != 0 {
		t.Errorf("the lease: %s", a)
	}
	if n := len(old.Routes); n != len(nic().Routes)-1 {
		t.Errorf("%d routes: the learned one has expired, and no other", n)
	}
	older := nic().Aged(7200)
	if len(older.Addrs) != 2 {
		t.Errorf("addresses: %v", older.Addrs)
	}
	w := newWorld()
	for _, s := range forward(w, "system") {
		w.make(t, s)
	}
	w.Bridge.Addrs[0].Valid = 5555
	found := false
	for _, s := range Back(old, w.Host) {
		if a, ok := s.Want.(Addr); ok && a.Prefix == w.Bridge.Addrs[0].Prefix {
			found = true
			if a.Valid != 5555 {
				t.Errorf("given back: %s", a)
			}
		}
	}
	if !found {
		t.Errorf("%s is not given back", w.Bridge.Addrs[0])
	}
}

// What was added to the bridge since the move goes to the NIC, except what the agent added.
func TestExtras(t *testing.T) {
	w := newWorld()
	for _, s := range forward(w, "system") {
		w.make(t, s)
	}
	added := addr("172.16.0.7/16").on("eth0", "breth0")
	w.make(t, Step{Want: added})
	w.make(t, Step{Want: route("172.17.0.0/16", "172.16.0.1", 0).on("eth0", "breth0")})
	agents := route("10.96.0.0/16", "172.16.0.1", 0).on("eth0", "breth0")
	agents.Protocol = hostplan.RouteProtocol
	w.make(t, Step{Want: agents})
	settle(t, w, "going back", func() []Step { return back(w) })
	text := w.NIC.String()
	for line, want := range map[string]bool{
		"addr 172.16.0.7/16 dev eth0": true, "route 172.16.0.0/16 dev eth0 proto kernel": true,
		"route 172.17.0.0/16 via 172.16.0.1 dev eth0": true, "route 10.96.0.0/16": false,
	} {
		if strings.Contains(text, line) != want {
			t.Errorf("%q is there: %v, want %v:\n%s", line, !want, want, text)
		}
	}
}
