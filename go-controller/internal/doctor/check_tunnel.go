package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/encap"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ping"
)

func checkEncapIP(_ context.Context, h *facts) Finding {
	if h.ovsErr != nil && len(h.host.EncapIPs) == 0 {
		return noAnswer(openVSwitch)
	}
	if len(h.host.EncapIPs) == 0 {
		return problem("no tunnel address: external_ids:%s is %q", names.OVSEncapIP, h.ids[names.OVSEncapIP]).
			fixed("ovs-vsctl set Open_vSwitch . external_ids:" + names.OVSEncapIP + "=ADDRESS")
	}
	var where []string
	var lost faults
	for _, ip := range h.host.EncapIPs {
		p, here, err := h.t.Kernel.Find(ip)
		switch {
		case err != nil:
			return unchecked("%v", err)
		case !here:
			lost.add(ip.String(), fmt.Sprintf("ip addr add %s/LENGTH dev INTERFACE", ip))
		default:
			where = append(where, fmt.Sprintf("%s on %s, MTU %d", ip, p.Link, p.MTU))
		}
	}
	if len(lost.wrong) > 0 {
		return problem("tunnel address %s is on no interface of this host", strings.Join(lost.wrong, ", ")).
			fixed(lost.fixes...).
			fixed("# with its routes. A bridge that is made anew, or an `ovs-appctl exit --cleanup`, takes them away;",
				"# with another address: ovs-vsctl set Open_vSwitch . external_ids:"+names.OVSEncapIP+"=ADDRESS")
	}
	if _, err := h.mtu(); err != nil {
		return problem("%v", err).fixed("ip link set " + h.places[0].Link + " mtu 1500")
	}
	return ok("%s", strings.Join(where, "; "))
}

// peer is a tunnel end of another chassis.
type peer struct {
	chassis string // its host name, or its name when it has none
	id      string
	kind    string
	ip      netip.Addr
}

// peers are all of them, sorted.
func (h *facts) peers() (out []peer) {
	mine := h.ids[names.OVSSystemID]
	for _, c := range h.chassis {
		name := c.Text("name")
		if name == mine {
			continue
		}
		for _, e := range h.endpoints(name) {
			ip, err := netip.ParseAddr(e.ip)
			if err != nil {
				continue // ovn-controller writes none that is none
			}
			host := c.Text("hostname")
			if host == "" {
				host = name
			}
			out = append(out, peer{host, name, e.kind, ip})
		}
	}
	slices.SortFunc(out, func(a, b peer) int {
		return slices.Compare([]string{a.chassis, a.ip.String()}, []string{b.chassis, b.ip.String()})
	})
	return out
}

// checkTunnels looks for a working tunnel to each other chassis.
func checkTunnels(ctx context.Context, h *facts) Finding {
	open, failed := map[string]bool{}, map[string]string{}
	for _, i := range h.interfaces {
		remote := i.Map("options")["remote_ip"]
		switch {
		case remote == "":
		case i.Int("ofport") > 0:
			open[remote] = true
		default:
			failed[remote] = i.Text("error")
		}
	}
	reached, without := map[string]bool{}, map[string]string{}
	for _, p := range h.peers() {
		mine := h.ids[names.OVSEncapType]
		why := "there is none"
		if f, is := failed[p.ip.String()]; is {
			why = "Open vSwitch can't open it: " + f
		}
		// There may be a tunnel, in which only the other way is understood.
		if p.kind != mine {
			why = fmt.Sprintf("it has type %s, this node %s", p.kind, mine)
		}
		if open[p.ip.String()] && p.kind == mine {
			reached[p.id] = true
		}
		without[p.id] = fmt.Sprintf("chassis %s: %s", p.chassis, why)
	}
	var missing []string
	for id, why := range without {
		if !reached[id] {
			missing = append(missing, why)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		return problem("no tunnel to %d of %d other chassis: %s", len(missing), len(without), several(missing)).fixed(
			fixRestartController,
			"# the same --encap-type on every node; with the kernel's datapath: modprobe "+h.ids[names.OVSEncapType])
	}
	if lost := h.unroutable(ctx); len(lost) > 0 {
		return problem("the userspace datapath has no route to %s", several(lost)).fixed("ovs-appctl ovs/route/show",
			"# the bridge with the tunnel address must be up and have its routes")
	}
	return ok("to each of %d other chassis", len(without))
}

// unroutable lists the tunnel ends to which the userspace datapath has no route. It
// keeps a routing table of its own, with the kernel's routes through bridges.
func (h *facts) unroutable(ctx context.Context) (out []string) {
	dir, local := h.c.Node.OVSRunDir()
	if h.c.Node.DatapathType != config.DatapathNetdev || !local {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	for _, p := range h.peers() {
		if h.sourceFor(p.ip).IsValid() {
			if answer, err := h.t.Appctl(ctx, dir, "ovs-vswitchd", "ovs/route/lookup", p.ip.String()); err == nil &&
				!strings.Contains(answer, "dev ") {
				out = append(out, fmt.Sprintf("%s (chassis %s)", p.ip, p.chassis))
			}
		}
	}
	return out
}

// sourceFor is this node's tunnel address of the family of ip, the zero Addr for none.
func (h *facts) sourceFor(ip netip.Addr) netip.Addr {
	for _, p := range h.places {
		if p.Prefix.Addr().Is4() == ip.Is4() {
			return p.Prefix.Addr()
		}
	}
	return netip.Addr{}
}

// How many peers are pinged at a time, and how large the ping is that only asks
// whether there is somebody.
const (
	pingsAtOnce = 32
	smallPing   = 64
)

// checkPaths tests whether the largest packets that pods can send reach the other
// chassis unfragmented.
func checkPaths(ctx context.Context, h *facts) Finding {
	mtu, err := h.mtu()
	if err != nil || len(h.places) == 0 {
		return unchecked("no tunnel address is on this host")
	}
	var mu sync.Mutex
	var wrong, fixes, silent []string
	count := 0
	var wg sync.WaitGroup
	limit := make(chan struct{}, pingsAtOnce)
	for _, p := range h.peers() {
		from := h.sourceFor(p.ip)
		if !from.IsValid() {
			continue
		}
		count++
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			why, fix, quiet := h.path(ctx, p, from, mtu)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case why == "":
			case quiet:
				silent = append(silent, why)
			default:
				wrong, fixes = append(wrong, why), append(fixes, fix)
			}
		})
	}
	wg.Wait()
	slices.Sort(wrong)
	slices.Sort(fixes)
	slices.Sort(silent)
	switch {
	case len(wrong) > 0:
		return problem("%s", several(wrong)).fixed(slices.Compact(fixes)...)
	case len(silent) > 0:
		return unchecked("%d of %d: %s", len(silent), count, several(silent))
	}
	return ok("packets of %d bytes reach each of %d other tunnel ends",
		mtu+encap.Overhead(h.c.Node.EncapType, h.host.EncapIPs), count)
}

// path is what is wrong on the path to one peer, and the command that solves it. quiet
// is true when that can't be known.
func (h *facts) path(ctx context.Context, p peer, from netip.Addr, mtu int) (why, fix string, quiet bool) {
	overhead := encap.Overhead(h.c.Node.EncapType, []netip.Addr{p.ip})
	size := mtu + overhead
	who := fmt.Sprintf("%s (chassis %s)", p.ip, p.chassis)
	route, reachable, err := h.t.Kernel.PathTo(from, p.ip)
	switch {
	case err != nil:
		return err.Error(), "", true
	case !reachable:
		return "there is no route to " + who, fmt.Sprintf("ip route add %s via ROUTER", p.ip), false
	case route.MTU < size:
		return fmt.Sprintf("the route to %s through %s has an MTU of %d, packets may have %d bytes", who, route.Link,
				route.MTU, size),
			fmt.Sprintf("# raise the MTU of %s, or give every node: --mtu %d", route.Link, route.MTU-overhead), false
	}
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	err = h.t.Ping(ctx, from, p.ip, size)
	if err == nil {
		return "", "", false
	}
	if !errors.Is(err, ping.ErrNoAnswer) && !errors.Is(err, ping.ErrTooBig) && !errors.Is(err, context.DeadlineExceeded) {
		return err.Error(), "", true
	}
	small, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.c.Timeout)
	defer cancel()
	if h.t.Ping(small, from, p.ip, smallPing) != nil {
		return who + " answers no ping: it is down, or ICMP is filtered", "", true
	}
	return fmt.Sprintf("packets of %d bytes do not reach %s, small ones do: %v", size, who, err),
		fmt.Sprintf("# find the largest that does: ping -M do -s %d -I %s %s; give every node --mtu of %d less",
			size-ping.Headers(p.ip), from, p.ip, overhead), false
}
