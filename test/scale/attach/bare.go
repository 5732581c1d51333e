package attach

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
)

// BareTiming is how long the bare minimum took.
type BareTiming struct {
	Veth      time.Duration // the pair, with addresses and default routes in the pod
	Port      time.Duration // one transaction
	Installed time.Duration // until ovn-controller has set ovn-installed
}

// Whole is the sum.
func (t BareTiming) Whole() time.Duration { return t.Veth + t.Port + t.Installed }

// firstBare is the number, within the node's subnets, of the first address of the bare ports. Pods get lower ones.
const firstBare = 128

const mtu = 1400

// object is a JSON object.
type object map[string]any

func ovsMap(pairs ...string) []any {
	out := [][]string{}
	for p := range slices.Chunk(pairs, 2) {
		out = append(out, p)
	}
	return []any{"map", out}
}

// CreateBare makes n logical ports like those that the master makes for pods.
func (b *Bed) CreateBare(n int) error {
	nb, err := ovsdbwire.Dial(b.cluster.Control.Host(control.NBSocket))
	if err != nil {
		return err
	}
	defer func() { _ = nb.Close() }() // all answers have arrived
	var ops []any
	for i := range n {
		address := b.bareMAC(i).String()
		for _, p := range b.bareAddresses(i) {
			address += " " + p.Addr().String()
		}
		id := fmt.Sprintf("port%d", i)
		ops = append(ops,
			object{"op": "insert", "table": "Logical_Switch_Port", "uuid-name": id, "row": object{
				"name": bareName(i), "addresses": address, "port_security": address, "options": ovsMap("requested-chassis",
					b.node.Spec.Name)}},
			object{"op": "mutate", "table": "Logical_Switch", "where": []any{[]any{"name", "==", b.node.Spec.Name}},
				"mutations": []any{[]any{"ports", "insert", []string{"named-uuid", id}}}})
	}
	return nb.Transact("OVN_Northbound", ops...)
}

func bareName(i int) string { return BareNamespace + "_" + load.PodName(i) }

func (b *Bed) bareMAC(i int) net.HardwareAddr {
	return net.HardwareAddr{0x0a, 0x59, 0, 0, byte(i >> 8), byte(i)}
}

func (b *Bed) bareAddresses(i int) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range b.subnets {
		a := s.Addr().AsSlice()
		a[len(a)-1] = byte(firstBare + i)
		addr, _ := netip.AddrFromSlice(a) // has the length of an address
		out = append(out, netip.PrefixFrom(addr, s.Bits()))
	}
	return out
}

// Bare attaches the i-th of the bare ports.
func (b *Bed) Bare(ctx context.Context, i int) (t BareTiming, err error) {
	name := fmt.Sprintf("bare%d", i)
	began := time.Now()
	if err := b.bareVeth(name, i); err != nil {
		return t, fmt.Errorf("making the veth pair %s: %w", name, err)
	}
	t.Veth = time.Since(began)
	installed := b.ovs.installed(name)
	began = time.Now()
	err = b.ovs.wire.Transact("Open_vSwitch",
		object{"op": "insert", "table": "Interface", "uuid-name": "iface", "row": object{"name": name,
			"external_ids": ovsMap("iface-id", bareName(i))}},
		object{"op": "insert", "table": "Port", "uuid-name": "port", "row": object{"name": name,
			"interfaces": []string{"named-uuid", "iface"}}},
		object{"op": "mutate", "table": "Bridge", "where": []any{[]any{"name", "==", "br-int"}},
			"mutations": []any{[]any{"ports", "insert", []string{"named-uuid", "port"}}}})
	if err != nil {
		return t, fmt.Errorf("adding port %s: %w", name, err)
	}
	t.Port = time.Since(began)
	began = time.Now()
	select {
	case <-installed:
		t.Installed = time.Since(began)
		return t, nil
	case <-b.ovs.wire.Ended():
		return t, fmt.Errorf("waiting for ovn-installed of %s: the connection to Open vSwitch's database ended", name)
	case <-ctx.Done():
		return t, fmt.Errorf("waiting for ovn-installed of %s: %w", name, context.Cause(ctx))
	}
}

// bareVeth makes the pair and configures both ends.
func (b *Bed) bareVeth(name string, i int) error {
	path := fmt.Sprintf("/proc/%d/root/run/netns/%s", b.node.PID(), netnsName(BareNamespace, i))
	podNS, err := netns.GetFromPath(path)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer func() { _ = podNS.Close() }() // the namespace stays
	host, err := b.node.Netlink()
	if err != nil {
		return err
	}
	defer host.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, mtu
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerHardwareAddr: b.bareMAC(i),
		PeerNamespace: netlink.NsFd(int(podNS))}
	if err := host.LinkAdd(veth); err != nil {
		return err
	}
	if err := b.barePod(podNS, i); err != nil {
		return err
	}
	return host.LinkSetUp(veth)
}

func (b *Bed) barePod(podNS netns.NsHandle, i int) error {
	pod, err := netlink.NewHandleAt(podNS)
	if err != nil {
		return err
	}
	defer pod.Close()
	eth0, err := pod.LinkByName("eth0")
	if err != nil {
		return err
	}
	for _, p := range b.bareAddresses(i) {
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if p.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD
		}
		if err := pod.AddrAdd(eth0, addr); err != nil {
			return fmt.Errorf("adding address %s: %w", p, err)
		}
	}
	if err := pod.LinkSetUp(eth0); err != nil {
		return err
	}
	for _, s := range b.subnets {
		gateway := s.Masked().Addr().Next()
		all := &net.IPNet{IP: make(net.IP, gateway.BitLen()/8), Mask: net.CIDRMask(0, gateway.BitLen())}
		if err := pod.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Dst: all, Gw: gateway.AsSlice()}); err != nil {
			return fmt.Errorf("adding the default route via %s: %w", gateway, err)
		}
	}
	return nil
}

// switchClient is a connection to the node's Open_vSwitch database that follows its interfaces.
type switchClient struct {
	wire *ovsdbwire.Client

	mu    sync.Mutex
	names map[string]string        // UUID of a row -> name
	done  map[string]chan struct{} // by name; closed when ovn-installed is set
}

func dialSwitch(socket string) (*switchClient, error) {
	wire, err := ovsdbwire.Dial(socket)
	if err != nil {
		return nil, err
	}
	s := &switchClient{wire: wire, names: map[string]string{}, done: map[string]chan struct{}{}}
	if err := wire.Monitor("Open_vSwitch", "Interface", []string{"name", "external_ids"}, s.update); err != nil {
		_ = wire.Close() // the first error counts
		return nil, err
	}
	return s, nil
}

// installed returns a channel that is closed when ovn-installed of the interface is set.
func (s *switchClient) installed(name string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{})
	s.done[name] = c
	return c
}

func (s *switchClient) update(_ string, rows map[string]ovsdbwire.RowUpdate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uuid, u := range rows {
		var row struct {
			Name        string
			ExternalIDs [2]json.RawMessage `json:"external_ids"` // "map", [[key, value], ...]
		}
		if raw := u.Content(); raw == nil || json.Unmarshal(raw, &row) != nil {
			continue // without external_ids of this form, it is not a pod's
		}
		if row.Name != "" {
			s.names[uuid] = row.Name
		}
		var ids [][2]string
		if json.Unmarshal(row.ExternalIDs[1], &ids) != nil {
			continue
		}
		if c := s.done[s.names[uuid]]; c != nil && slices.Contains(ids, [2]string{"ovn-installed", "true"}) {
			close(c)
			delete(s.done, s.names[uuid])
		}
	}
}
