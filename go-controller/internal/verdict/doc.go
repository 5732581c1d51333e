// Package verdict tells what the ACLs of a Northbound database do with a packet: whether they allow it, and which ACL
// decides.
//
//   - Evaluator knows the switches, port groups, address sets and ACLs of a database, whoever made them.
//   - Packet is the first packet of a connection. Replies are not asked about: connection tracking allows them.
//   - Evaluator.Stage asks the ACLs of one stage of one switch. Evaluator.Connection asks all stages on the way from
//     one logical port to another. A Step is the answer of one stage, a Verdict that of the whole way.
//
// The matches of ACLs are a language (ovn-sb(5), Logical_Flow match). This package knows the part of it that ACLs need:
//
//   - &&, ||, ! and parentheses, 0 and 1, comparisons with ==, !=, <, <=, >, >=, and ranges such as 1 <= tcp.dst <= 99;
//   - numbers, addresses and MACs, each with a mask or not, "names", $address_sets and @port_groups, alone or in {};
//   - the fields inport, outport, eth.type, ip.proto, ct_mark.blocked, {ip4,ip6}.{src,dst}, {tcp,udp,sctp}.{src,dst}
//     and {icmp4,icmp6}.{type,code};
//   - the predicates ip, ip4, ip6, tcp, udp, sctp, icmp, icmp4, icmp6, nd, igmp, ip.is_frag, ct.est, ct.new, and
//     {eth,ip4,ip6}.mcast.
//
// Everything else is an error that names the ACL and the place. The rules of OVN hold: a field implies its protocol, &&
// and || need parentheses when used together, and only fields that OVN can mask may be compared for inequality. As in
// OVN, a match is void when it names an address set that does not exist, or a port group without a port on the switch:
// the ACL then has no effect at all.
//
// The package does not read NB_Global: packets that no ACL matches are allowed. It does not read load balancers either:
// a caller says what the client connects to, and which backend answers. The package is pure.
package verdict
