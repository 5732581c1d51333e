package gateway

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Cookie marks our flows on external bridges ("nbgw" in ASCII).
const Cookie = 0x6e626777

// Zone is the conntrack zone in which the gateway router's connections are
// remembered. ovn-controller numbers its zones from 1 upwards.
const Zone = 64000

// The priorities in table 0, which sorts frames by where they come from, and in
// table 1, which has what came from the NIC and went through conntrack. Flows
// that send new connections to an address and port of this node to the gateway
// router belong into table 1, between unknown and known.
const (
	tunnel  = 130 // table 0: the overlay's own packets
	asking  = 126 // table 0: who asks for a neighbour's MAC
	spoofed = 125 // table 0: what has a source within the cluster
	refused = 122 // table 0: what pods send to OVN's databases
	both    = 120 // table 0: ARP and neighbour discovery
	tracked = 110 // table 0: IP
	other   = 105 // table 0: whatever else has the shared MAC
	normal  = 1   // table 0: what the bridge does with all else
	known   = 100 // table 1: of a connection of the gateway router
	unknown = 10  // table 1: of none
)

// learn makes the bridge's NORMAL switching learn the source of a frame, without
// sending the frame anywhere: a frame to its own source would leave where it came in.
// Answers never pass NORMAL. Without this, the host's packets would go to all ports.
const learn = "clone(move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],NORMAL)"

// The ICMPv6 types of RFC 4861 section 4: the first, that of who asks for a MAC, and
// the last of them. Conntrack knows no connections of theirs.
const (
	routerSolicitation    = 133
	neighbourSolicitation = 135
	redirect              = 137
)

// tunnelPort is the UDP port of a type of tunnel.
func tunnelPort(encapType string) (port int, ok bool) {
	switch encapType {
	case config.EncapGeneve:
		return names.GenevePort, true
	case config.EncapVXLAN:
		return names.VXLANPort, true
	}
	return 0, false
}

// Flows are the flows of an external bridge. encapType is what
// external_ids:ovn-encap-type has: those tunnels end at the host and need not
// be tracked. guard says which sources are within the cluster, and databases what pods must
// not reach. Until the patch port is there, all flows do is to keep the host the receiver of
// the shared MAC, and the bridge a switch.
//
// A bridge without a controller has a NORMAL flow of its own, which Open vSwitch
// makes once: nobody brings it back when all flows are deleted, and the node
// would be off the network. So there is one of ours, above priority 0, where it
// would take the place of the bridge's own and take that with it when it goes.
func Flows(
	e hostplan.External, encapType string, guard hostplan.AntiSpoof, databases hostplan.DatabaseDrop,
) hostplan.Flows {
	d := demux{e, hostplan.Flows{Bridge: e.Bridge, Cookie: Cookie}}
	d.fromNIC(other, "", learn+","+d.toHost())
	d.add(0, normal, "", "NORMAL")
	if e.PatchPort == 0 {
		return d.out
	}
	d.tunnels(encapType)
	d.antiSpoof(guard)
	d.refuse(databases)
	patch := fmt.Sprintf("output:%d", e.PatchPort)
	track := fmt.Sprintf("ct(table=1,zone=%d)", Zone)
	d.fromNIC(both, "arp", learn+","+patch+","+d.toHost())
	d.fromOVN(other, "", "")
	for icmp := routerSolicitation; icmp <= redirect; icmp++ {
		match := fmt.Sprintf("icmp6,icmp_type=%d", icmp)
		d.fromNIC(both, match, learn+","+patch+","+d.toHost())
		d.fromOVN(both, match, "")
	}
	for _, ip := range []string{"ip", "ipv6"} {
		d.fromNIC(tracked, ip, learn+","+track)
		d.fromOVN(tracked, ip, fmt.Sprintf("ct(commit,zone=%d),", Zone))
	}
	d.add(1, known, "ct_state=+est+trk", patch)
	d.add(1, known, "ct_state=+rel+trk", patch)
	if d.e.VLAN != 0 {
		d.add(1, unknown, d.vlan(), d.toHost()) // what takes a tag off must match it
	} else {
		d.add(1, unknown, "", d.toHost())
	}
	return d.out
}

// demux collects the flows of one bridge.
type demux struct {
	e   hostplan.External
	out hostplan.Flows
}

// tunnels keeps the overlay's packets off conntrack. They must be whole: a fragment has
// no port.
func (d *demux) tunnels(encapType string) {
	if port, ok := tunnelPort(encapType); ok {
		for _, udp := range []string{"udp", "udp6"} {
			d.fromNIC(tunnel, fmt.Sprintf("%s,tp_dst=%d,nw_frag=no", udp, port), learn+","+d.toHost())
		}
	}
}

// multicast matches frames to more than one receiver. The gateway router takes them, and may forward what is in them to
// a pod.
const multicast = "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00"

// antiSpoof keeps what comes from the NIC with a source within the cluster away from the gateway router. The host gets
// what has the shared MAC, and decides: it may be an answer to itself. Packets with a source on the join switch may be
// from a network outside: they go to the gateway router if that has the connection.
func (d *demux) antiSpoof(guard hostplan.AntiSpoof) {
	inside, join := d.notOutside(guard.Inside), d.notOutside(guard.Join)
	if len(inside)+len(join) == 0 {
		return
	}
	d.add(0, asking, fmt.Sprintf("icmp6,icmp_type=%d,in_port=%d,%s,%s", neighbourSolicitation, d.e.UplinkPort,
		d.vlan(), multicast), "NORMAL") // of a node that answers this one
	for _, p := range inside {
		d.fromNIC(spoofed, source(p), learn+","+d.toHost())
	}
	for _, p := range append(inside, join...) {
		d.add(0, spoofed, fmt.Sprintf("%s,in_port=%d,%s,%s", source(p), d.e.UplinkPort, d.vlan(), multicast), "drop")
	}
}

// refuse drops what pods send through the gateway router to OVN's databases. The host itself does not come from there.
func (d *demux) refuse(databases hostplan.DatabaseDrop) {
	servers, ranges := databases.To()
	for _, a := range servers {
		to := "tcp6,ipv6_dst=" + a.String()
		if a.Is4() {
			to = "tcp,nw_dst=" + a.String()
		}
		for _, r := range ranges {
			for port := int(r.First); port <= int(r.Last); port++ {
				d.add(0, refused, fmt.Sprintf("%s,tp_dst=%d,in_port=%d", to, port, d.e.PatchPort), "drop")
			}
		}
	}
}

// source matches packets by their source.
func source(p netip.Prefix) string {
	if p.Addr().Is4() {
		return "ip,nw_src=" + p.String()
	}
	return "ipv6,ipv6_src=" + p.String()
}

// notOutside are the prefixes of a list without those that the network outside has addresses of.
func (d *demux) notOutside(list string) []netip.Prefix {
	return slices.DeleteFunc(hostplan.Prefixes(list), func(p netip.Prefix) bool {
		return slices.ContainsFunc(d.e.Addrs, p.Overlaps)
	})
}

// fromNIC adds a flow for what comes from the NIC for the shared MAC in the
// gateway's VLAN.
func (d *demux) fromNIC(priority int, match, actions string) {
	m := fmt.Sprintf("in_port=%d,%s,dl_dst=%s", d.e.UplinkPort, d.vlan(), d.e.MAC)
	if match != "" {
		m = match + "," + m
	}
	d.add(0, priority, m, actions)
}

// vlan matches the gateway's VLAN, or frames without a tag.
func (d *demux) vlan() string {
	if d.e.VLAN != 0 {
		return fmt.Sprintf("dl_vlan=%d", d.e.VLAN)
	}
	return "vlan_tci=0x0000/0x1fff"
}

// fromOVN adds a flow for what comes from the gateway router. It leaves through
// the NIC and does not go to the host, which has the same addresses: that could
// take a neighbour advertisement for another's claim to them (RFC 4862 section
// 5.4).
func (d *demux) fromOVN(priority int, match, first string) {
	m := fmt.Sprintf("in_port=%d", d.e.PatchPort)
	if match != "" {
		m = match + "," + m
	}
	d.add(0, priority, m, fmt.Sprintf("%soutput:%d", first, d.e.UplinkPort))
}

// toHost is the output to the host. An access port's frames have no tag there
// (ovs-vswitchd.conf.db(5), Port.tag), but an explicit output does not remove it. It
// must be the last action.
func (d *demux) toHost() string {
	if d.e.VLAN != 0 && d.e.LocalTag == d.e.VLAN {
		return "pop_vlan,LOCAL"
	}
	return "LOCAL"
}

func (d *demux) add(table, priority int, match, actions string) {
	d.out.List = append(d.out.List, hostplan.Flow{Table: table, Priority: priority, Match: match, Actions: actions})
}
