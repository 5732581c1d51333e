package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	podInterface = "eth0"
	castInterval = 100 * time.Millisecond
	castHops     = 8 // routers between two nodes take one each
)

// multicast is cast or listen, with arguments as they were given.
func multicast(what, to, long string) error {
	group, err := netip.ParseAddrPort(to)
	if err != nil {
		return fmt.Errorf("group %q: %w", to, err)
	}
	wait, err := time.ParseDuration(long)
	if err != nil {
		return fmt.Errorf("wait %q: %w", long, err)
	}
	if what == "cast" {
		return cast(group, wait)
	}
	return listen(group, wait)
}

// cast sends the host's name to a group for a time, ten times a second.
func cast(group netip.AddrPort, wait time.Duration) error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("asking for the host name: %w", err)
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(group))
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer func() { _ = conn.Close() }() // everything is sent, or the error is reported
	if err := setHops(conn, group.Addr().Is4()); err != nil {
		return fmt.Errorf("setting the hop limit of multicast: %w", err)
	}
	tick := time.NewTicker(castInterval)
	defer tick.Stop()
	for end := time.Now().Add(wait); time.Now().Before(end); <-tick.C {
		if _, err := conn.Write([]byte(name)); err != nil {
			return fmt.Errorf("sending to %s: %w", group, err)
		}
	}
	return nil
}

// setHops sets how many routers multicast may pass, of which the default is none, and that the sender's own host does
// not hear it.
func setHops(conn *net.UDPConn, v4 bool) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	level, hops, loop := unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, unix.IPV6_MULTICAST_LOOP
	if v4 {
		level, hops, loop = unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, unix.IP_MULTICAST_LOOP
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = errors.Join(unix.SetsockoptInt(int(fd), level, hops, castHops), unix.SetsockoptInt(int(fd), level, loop, 0))
	})
	return errors.Join(err, failed)
}

// listen joins a group for a time, and prints who sent to it, each once.
func listen(group netip.AddrPort, wait time.Duration) error {
	link, err := net.InterfaceByName(podInterface)
	if err != nil {
		return fmt.Errorf("looking for %s: %w", podInterface, err)
	}
	conn, err := net.ListenMulticastUDP("udp", link, net.UDPAddrFromAddrPort(group))
	if err != nil {
		return fmt.Errorf("joining %s: %w", group, err)
	}
	defer func() { _ = conn.Close() }() // nothing was sent
	if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return fmt.Errorf("setting a deadline: %w", err)
	}
	heard, buf := map[string]bool{}, make([]byte, maxDatagram)
	for {
		n, _, err := conn.ReadFromUDP(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return fmt.Errorf("receiving: %w", err)
		}
		heard[string(buf[:n])] = true
	}
	for _, name := range slices.Sorted(maps.Keys(heard)) {
		fmt.Println(name)
	}
	return nil
}
