package sctp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"
)

// ErrAborted is the error of an association that the other side, or a firewall in its name, refused with an ABORT.
var ErrAborted = errors.New("aborted by the other side")

// repeat is the time after which a packet without an answer is sent again. It doubles each time: where many ask at
// once, packets that come too early would only delay the answers further.
const repeat = 250 * time.Millisecond

// firstPort is the first source port of clients, as of those that Linux chooses (ip-sysctl.rst, ip_local_port_range).
// Nodes use lower ones for what they forward. Rarely, two clients on a kernel choose the same port. If they ask the
// same server, both see packets with wrong verification tags, and fail.
const firstPort = 32768

// Ask opens an association, sends the question, returns the answer and shuts the association down.
//
// Errors: ErrAborted; ErrKernel; the context's; those of the socket, among them ICMP errors from the other side's
// kernel. Since a raw socket has no port, such an error may concern another association with the same address.
func Ask(ctx context.Context, to netip.AddrPort, question []byte) ([]byte, error) {
	if len(question) == 0 || len(question) > MaxMessage {
		return nil, fmt.Errorf("a question of %d bytes: want 1 to %d", len(question), MaxMessage)
	}
	if err := Usable(); err != nil {
		return nil, err
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	conn, err := (&net.Dialer{}).DialContext(ctx, network(to.Addr()), to.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("opening a raw socket: %w", err)
	}
	raw, ok := conn.(*net.IPConn)
	if !ok {
		return nil, fmt.Errorf("opening a raw socket: it is a %T", conn)
	}
	a := &asking{
		conn: raw, from: uint16(firstPort + rand.N(65536-firstPort)), to: to.Port(),
		own: initiation{tag: 1 + rand.N(^uint32(0)), tsn: rand.Uint32()},
	}
	if err := onlyPort(raw, to.Addr(), a.from); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	answer, err := a.ask(ctx, question)
	return answer, errors.Join(err, raw.Close())
}

// asking is an association on the client's side.
type asking struct {
	conn      *net.IPConn // connected: receives packets of the other side's address only
	from, to  uint16
	own, peer initiation
}

func (a *asking) ask(ctx context.Context, question []byte) (answer []byte, err error) {
	var failed error // unexpected packets of the peer
	err = a.exchange(ctx, 0, a.own.chunk(Init), func(c Chunk) (done bool) {
		if c.Type == InitAck {
			if a.peer, done = c.initiation(); !done {
				failed = errors.New("the INIT ACK has no tag or no cookie")
			}
		}
		return done || failed != nil
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("waiting for INIT ACK: %w", err)
	}
	a.peer.cookie = slices.Clone(a.peer.cookie) // it was a slice of the packet
	defer func() {
		if err != nil && !errors.Is(err, ErrAborted) { // so that the server does not wait for the rest
			err = errors.Join(err, a.send(a.peer.tag, Chunk{Type: Abort}))
		}
	}()
	err = a.exchange(ctx, a.peer.tag, Chunk{Type: CookieEcho, Value: a.peer.cookie}, func(c Chunk) bool {
		return c.Type == CookieAck
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for COOKIE ACK: %w", err)
	}
	acknowledged := false
	err = a.exchange(ctx, a.peer.tag, data(a.own.tsn, question), func(c Chunk) bool {
		switch c.Type {
		case Sack:
			acknowledged = acknowledged || c.acknowledges(a.own.tsn)
		case Data:
			if tsn, message, whole := c.message(); whole && tsn == a.peer.tsn {
				answer = slices.Clone(message)
			}
		}
		return acknowledged && answer != nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the answer: %w", err)
	}
	if err := a.send(a.peer.tag, sack(a.peer.tsn)); err != nil {
		return nil, err
	}
	err = a.exchange(ctx, a.peer.tag, shutdown(a.peer.tsn), func(c Chunk) bool { return c.Type == ShutdownAck })
	if err != nil {
		return nil, fmt.Errorf("waiting for SHUTDOWN ACK: %w", err)
	}
	return answer, a.send(a.peer.tag, Chunk{Type: ShutdownComplete})
}

// exchange sends a chunk repeatedly until done accepts a chunk of the other side.
func (a *asking) exchange(ctx context.Context, tag uint32, c Chunk, done func(Chunk) bool) error {
	buf := make([]byte, maxPacket)
	for wait := repeat; ; wait *= 2 {
		if err := a.send(tag, c); err != nil {
			return err
		}
		until := time.Now().Add(wait)
		if d, ok := ctx.Deadline(); ok && d.Before(until) {
			until = d
		}
		if err := a.conn.SetReadDeadline(until); err != nil {
			return fmt.Errorf("setting a deadline: %w", err)
		}
		for {
			n, _, err := a.conn.ReadFromIP(buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return fmt.Errorf("receiving: %w", err)
			}
			if over, err := a.take(buf[:n], done); over || err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// take handles a packet. It ignores packets of other associations.
func (a *asking) take(b []byte, done func(Chunk) bool) (bool, error) {
	p, err := Parse(b)
	if err != nil || p.From != a.to || p.To != a.from {
		return false, nil //nolint:nilerr // like a kernel, ignore a damaged packet: it counts as lost
	}
	for _, c := range p.Chunks {
		mine := p.Tag == a.own.tag
		if c.Type == Abort && (mine || c.Flags&flagT != 0 && p.Tag == a.peer.tag) {
			return false, ErrAborted
		}
		if mine && done(c) {
			return true, nil
		}
	}
	return false, nil
}

func (a *asking) send(tag uint32, c Chunk) error {
	if _, err := a.conn.Write(Packet{a.from, a.to, tag, []Chunk{c}}.Marshal()); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	return nil
}
