package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
)

// whoamiTimeout bounds each exchange with a whoami server.
const whoamiTimeout = 3 * time.Second

// InNetns runs f in the network namespace of this name (ip-netns(8)), "" for
// the caller's own; sockets that f itself makes belong there.
func InNetns(name string, f func() error) error {
	if name == "" {
		return f()
	}
	return ns.WithNetNSPath("/run/netns/"+name, func(ns.NetNS) error { return f() })
}

// StartWhoami serves TCP and UDP, IPv4 and IPv6, on a port in a network
// namespace until the test ends. To each line, which is a packet with UDP, it
// answers with the sender's address, a blank and the line.
func StartWhoami(t testing.TB, netns string, port int) {
	t.Helper()
	var l net.Listener
	var p net.PacketConn
	err := InNetns(netns, func() error {
		var errs [2]error
		l, errs[0] = net.Listen("tcp", fmt.Sprintf(":%d", port))
		p, errs[1] = net.ListenPacket("udp", fmt.Sprintf(":%d", port))
		return errors.Join(errs[:]...)
	})
	if err != nil {
		t.Fatalf("serving port %d in namespace %q: %v", port, netns, err)
	}
	t.Cleanup(func() { _ = errors.Join(l.Close(), p.Close()) }) // nobody is to hear of it
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerStream(c)
		}
	}()
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = p.WriteTo([]byte(host(from)+" "+string(buf[:n])), from) // the asker has a deadline
		}
	}()
}

func answerStream(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(c, "%s %s", host(c.RemoteAddr()), line); err != nil {
			return
		}
	}
}

func host(a net.Addr) string {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String()
	}
	return ap.Addr().Unmap().WithZone("").String()
}

// Whoami is a connection to a whoami server.
type Whoami struct {
	c net.Conn
	r *bufio.Reader
}

// DialWhoami connects from a network namespace; network is "tcp" or "udp",
// address HOST:PORT with a numeric host.
func DialWhoami(netns, network, address string) (*Whoami, error) {
	var c net.Conn
	err := InNetns(netns, func() (err error) {
		c, err = net.DialTimeout(network, address, whoamiTimeout)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Whoami{c, bufio.NewReaderSize(c, 1<<16)}, nil
}

// Close ends the connection.
func (w *Whoami) Close() { w.c.Close() }

// Ask sends a line and returns the address that the server saw.
func (w *Whoami) Ask(line string) (string, error) {
	if err := w.c.SetDeadline(time.Now().Add(whoamiTimeout)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(w.c, line); err != nil {
		return "", err
	}
	answer, err := w.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	from, back, _ := strings.Cut(strings.TrimSuffix(answer, "\n"), " ")
	if back != line {
		return "", fmt.Errorf("sent %d bytes %.20q, %d came back: %.20q", len(line), line, len(back), back)
	}
	return from, nil
}

// AskOnce connects, asks and closes.
func AskOnce(netns, network, address string) (string, error) {
	w, err := DialWhoami(netns, network, address)
	if err != nil {
		return "", err
	}
	defer w.Close()
	return w.Ask("who am I")
}
