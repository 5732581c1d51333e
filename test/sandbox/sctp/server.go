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

// Lifetimes of a cookie, and of an association that is not shut down.
const (
	cookieLife      = 60 * time.Second
	associationLife = 5 * time.Minute
)

// Listener is the server of a port, over IPv4 and IPv6.
type Listener struct {
	port    uint16
	sockets []*socket
}

// Listen opens a server's sockets. From then on INITs wait for Serve.
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

// Serve answers the first message of each association with what answer says to
// who sent it: 1 to MaxMessage bytes. It ends with an error, when a socket fails or
// is closed (net.ErrClosed).
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

// end is the other side of an association, as it is seen at an own address.
type end struct {
	path
	port uint16
}

// serving is an association from its server's side.
type serving struct {
	own, peer initiation
	since     time.Time
	answer    []byte // nil until there was a question
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
			continue // as a kernel does: it is as if it were lost
		}
		e := end{way, p.From}
		if tag, chunks := s.reply(e, p); len(chunks) > 0 {
			// One that can't be sent is lost, and asked for again.
			_ = s.answer(way, Packet{s.port, p.From, tag, chunks})
		}
	}
}

// reply is what is sent back for a packet: chunks, and the verification tag.
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

// take is what an association answers to a chunk.
func (s *server) take(e end, a *serving, c Chunk) []Chunk {
	switch c.Type {
	case Data:
		tsn, message, whole := c.message()
		if !whole || tsn != a.peer.tsn {
			delete(s.open, e) // a question has one chunk, which comes first
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

// astray answers a packet of no association (RFC 9260 section 8.4).
func astray(first Chunk) []Chunk {
	switch first.Type {
	case Abort, ShutdownComplete, CookieAck, Error:
		return nil
	case ShutdownAck:
		return []Chunk{{Type: ShutdownComplete, Flags: flagT}}
	}
	return []Chunk{{Type: Abort, Flags: flagT}}
}

// cookie is all that a server keeps of an INIT, and the client keeps for it (RFC
// 9260 section 5.1.3): the time, tags and first TSNs of both, signed together with
// where it came from.
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

// establish opens the association of a cookie; ok is false when it is not of this
// server, too old, or not of who sends it. One that comes again changes nothing.
func (s *server) establish(e end, tag uint32, cookie []byte) (ok bool) {
	if len(cookie) < cookieSize || !hmac.Equal(cookie[cookieSize:], s.signature(e, cookie[:cookieSize])) {
		return false
	}
	number := func(i int) uint32 { return binary.BigEndian.Uint32(cookie[8+4*i:]) }
	now := time.Now()
	a := &serving{own: initiation{tag: number(0), tsn: number(1)}, peer: initiation{tag: number(2), tsn: number(3)}, since: now}
	if tag != a.own.tag || now.Sub(time.Unix(int64(binary.BigEndian.Uint64(cookie)), 0)) > cookieLife {
		return false
	}
	for other, b := range s.open {
		if now.Sub(b.since) > associationLife {
			delete(s.open, other)
		}
	}
	if b := s.open[e]; b == nil || b.own.tag != a.own.tag {
		s.open[e] = a // also instead of one whose client has forgotten it
	}
	return true
}

func random() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails (crypto/rand)
	return binary.BigEndian.Uint32(b[:])
}
