package sctp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Lifetimes of a cookie, and of an association without shutdown.
const (
	cookieLife      = 60 * time.Second
	associationLife = 5 * time.Minute
)

// Listener is the server of a port, over IPv4 and IPv6.
type Listener struct {
	port    uint16
	sockets []*socket
}

// Listen opens a server's sockets. From then on, INITs wait for Serve.
//
// Errors: ErrKernel; those of the sockets.
func Listen(port uint16) (*Listener, error) {
	if err := Usable(); err != nil {
		return nil, err
	}
	l := &Listener{port: port}
	for _, addr := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		s, err := listen(addr)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.sockets = append(l.sockets, s)
	}
	return l, nil
}

// Serve answers the first message of each association with the result of answer: 1 to MaxMessage bytes. It ends with an
// error if a socket fails or is closed (net.ErrClosed).
func (l *Listener) Serve(answer func(from netip.AddrPort, question []byte) []byte) error {
	ended := make(chan error, len(l.sockets))
	for _, s := range l.sockets {
		go func() { ended <- newServer(s, l.port, answer).run() }()
	}
	return <-ended
}

// Close closes the sockets.
func (l *Listener) Close() (err error) {
	for _, s := range l.sockets {
		err = errors.Join(err, s.conn.Close())
	}
	return err
}

// server has the associations of one family.
type server struct {
	*socket
	port    uint16
	respond func(netip.AddrPort, []byte) []byte
	key     []byte // signs cookies
	open    map[end]*serving
}

// end identifies the other side of an association and our own address.
type end struct {
	path
	port uint16
}

// serving is an association on the server's side.
type serving struct {
	own, peer initiation
	since     time.Time
	answer    []byte // nil until the question has come
}

func newServer(s *socket, port uint16, answer func(netip.AddrPort, []byte) []byte) *server {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails (crypto/rand)
	return &server{s, port, answer, key, map[end]*serving{}}
}

func (s *server) run() error {
	for {
		b, way, err := s.receive()
		if err != nil {
			return err
		}
		p, err := Parse(b)
		if err != nil || p.To != s.port || len(p.Chunks) == 0 {
			continue // like a kernel: it counts as lost
		}
		e := end{way, p.From}
		if tag, chunks := s.reply(e, p); len(chunks) > 0 {
			// A packet that cannot be sent is lost, and the client repeats its own.
			_ = s.answer(way, Packet{s.port, p.From, tag, chunks})
		}
	}
}

// reply returns the chunks to send for a packet, and their verification tag.
func (s *server) reply(e end, p Packet) (tag uint32, chunks []Chunk) {
	first := p.Chunks[0]
	if first.Type == Init {
		i, ok := first.initiation()
		if !ok || p.Tag != 0 {
			return 0, nil
		}
		own := initiation{tag: max(1, random()), tsn: random()}
		own.cookie = s.cookie(e, own, i)
		return i.tag, []Chunk{own.chunk(InitAck)}
	}
	if first.Type == CookieEcho {
		if !s.establish(e, p.Tag, first.Value) {
			return 0, nil
		}
		chunks = append(chunks, Chunk{Type: CookieAck})
		p.Chunks = p.Chunks[1:]
	}
	a := s.open[e]
	switch {
	case a == nil:
		return p.Tag, astray(first)
	case first.Type == Abort && first.Flags&flagT != 0 && p.Tag == a.peer.tag:
		delete(s.open, e)
		return 0, nil
	case p.Tag != a.own.tag:
		return 0, nil
	}
	for _, c := range p.Chunks {
		chunks = append(chunks, s.take(e, a, c)...)
	}
	return a.peer.tag, chunks
}

// take returns an association's answer to a chunk.
func (s *server) take(e end, a *serving, c Chunk) []Chunk {
	switch c.Type {
	case Data:
		tsn, message, whole := c.message()
		if !whole || tsn != a.peer.tsn {
			delete(s.open, e) // only the first chunk can be the question
			return []Chunk{{Type: Abort}}
		}
		if a.answer == nil {
			a.answer = s.respond(netip.AddrPortFrom(e.from, e.port), message)
		}
		return []Chunk{sack(tsn), data(a.own.tsn, a.answer)}
	case Heartbeat:
		return []Chunk{{Type: HeartbeatAck, Value: slices.Clone(c.Value)}}
	case Shutdown:
		if a.answer != nil && !c.acknowledges(a.own.tsn) {
			return []Chunk{data(a.own.tsn, a.answer)}
		}
		return []Chunk{{Type: ShutdownAck}}
	case ShutdownComplete, Abort:
		delete(s.open, e)
	}
	return nil
}

// astray answers a packet without an association (RFC 9260 section 8.4).
func astray(first Chunk) []Chunk {
	switch first.Type {
	case Abort, ShutdownComplete, CookieAck, Error:
		return nil
	case ShutdownAck:
		return []Chunk{{Type: ShutdownComplete, Flags: flagT}}
	}
	return []Chunk{{Type: Abort, Flags: flagT}}
}

// cookie is the state that the server would need for an INIT. The client keeps it for the server (RFC 9260 section
// 5.1.3): the time, the tags and first TSNs of both sides, signed together with the client's address.
func (s *server) cookie(e end, own, peer initiation) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(time.Now().Unix()))
	for _, n := range []uint32{own.tag, own.tsn, peer.tag, peer.tsn} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return append(b, s.signature(e, b)...)
}

const cookieSize = 8 + 4*4 // bytes, without its signature

func (s *server) signature(e end, cookie []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	fmt.Fprintf(m, "%s %d %s %x", e.from, e.port, e.to, cookie) // it never fails (hash.Hash)
	return m.Sum(nil)
}

// establish opens the association of a cookie. ok is false if the cookie is not from this server, too old, or not for
// this client. A repeated cookie changes nothing.
func (s *server) establish(e end, tag uint32, cookie []byte) (ok bool) {
	if len(cookie) < cookieSize || !hmac.Equal(cookie[cookieSize:], s.signature(e, cookie[:cookieSize])) {
		return false
	}
	number := func(i int) uint32 { return binary.BigEndian.Uint32(cookie[8+4*i:]) }
	now := time.Now()
	a := &serving{own: initiation{tag: number(0), tsn: number(1)}, peer: initiation{tag: number(2), tsn: number(3)},
		since: now}
	if tag != a.own.tag || now.Sub(time.Unix(int64(binary.BigEndian.Uint64(cookie)), 0)) > cookieLife {
		return false
	}
	for other, b := range s.open {
		if now.Sub(b.since) > associationLife {
			delete(s.open, other)
		}
	}
	if b := s.open[e]; b == nil || b.own.tag != a.own.tag {
		s.open[e] = a // also replaces an association that the client has forgotten
	}
	return true
}

func random() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails (crypto/rand)
	return binary.BigEndian.Uint32(b[:])
}
