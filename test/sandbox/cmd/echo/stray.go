package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// strayProtocols are IP protocols (IANA, Assigned Internet Protocol Numbers) that connection tracking may not support:
// IGMP, GRE, ESP, OSPF, PIM, VRRP, SCTP, UDP-Lite, and an experimental one. The payload is malformed for all of them.
func strayProtocols() []int { return []int{2, 47, 50, 89, 103, 112, 132, 136, 253} }

// strayICMP are ICMP types of answers and errors to packets that were never sent: RFC 792; RFC 4443 for IPv6.
func strayICMP(is4 bool) []byte {
	if is4 {
		return []byte{0, 3, 5, 11, 42}
	}
	return []byte{1, 2, 3, 4, 129}
}

// stray sends packets that belong to no connection to an address. It is an error if the kernel refuses one.
func stray(address string) error {
	to, err := netip.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("reading the address: %w", err)
	}
	family, icmp := "ip6", 58
	if to.Is4() {
		family, icmp = "ip4", 1
	}
	var errs []error
	for _, protocol := range strayProtocols() {
		errs = append(errs, send(fmt.Sprintf("%s:%d", family, protocol), address, slices.Repeat([]byte{0x12, 0x34}, 16)))
	}
	for _, kind := range strayICMP(to.Is4()) {
		message := make([]byte, 36)
		message[0] = kind
		if to.Is4() { // over IPv6 the kernel writes the checksum
			binary.BigEndian.PutUint16(message[2:], ^(uint16(kind) << 8))
		}
		errs = append(errs, send(fmt.Sprintf("%s:%d", family, icmp), address, message))
	}
	return errors.Join(errs...)
}

// send sends a packet of an IP protocol.
func send(network, address string, payload []byte) error {
	conn, err := net.Dial(network, address)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer func() { _ = conn.Close() }() // everything is sent, or the error is reported
	if _, err := conn.Write(payload); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	return nil
}
