package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Port is where Link listens for the other machines: the one of Raft in OVN (ovn-ctl(8), --db-nb-cluster-local-port).
const Port = 6643

// Bounds of a connection that is being made.
const (
	dialWithin      = 5 * time.Second
	handshakeWithin = 10 * time.Second
	maxHandshakes   = 64 // at the same time: with each machine, and with all strangers
	retry           = time.Second
)

// Channel is one kind of connection.
type Channel struct {
	Protocol string                   // its name on the wire
	Target   string                   // the Unix socket that it ends at, on the machine that is connected to
	Source   func(node string) string // the Unix socket on this machine that leads to a node's
}

// Link forwards connections.
type Link struct {
	Listen   string // address of the machine: "" or [::] for all
	Port     int    // of all machines
	Node     string // this machine's
	Channels []Channel
	// TLS is that of both sides. It is called for each connection, so that certificates can be renewed.
	TLS func() (*tls.Config, error)
	// Addresses lists those of the other machines, by node.
	Addresses func() map[string][]netip.Addr
	Log       *slog.Logger
}

// Serve accepts the connections of other machines until ctx ends.
func (l *Link) Serve(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.Listen+":"+strconv.Itoa(l.Port))
	if err != nil {
		return fmt.Errorf("listening for the databases of other machines: %w", err)
	}
	slots := slots{places: map[netip.Addr]chan struct{}{}}
	l.accept(ctx, listener, func(ctx context.Context, c net.Conn) {
		slot := slots.of(l.known(c.RemoteAddr()))
		select {
		case slot <- struct{}{}:
		default:
			return
		}
		inner, target, err := l.handshake(ctx, c)
		<-slot
		if err != nil {
			l.Log.Info("a connection to the databases was refused", "from", c.RemoteAddr().String(), "error", err)
			return
		}
		var d net.Dialer
		out, err := d.DialContext(ctx, "unix", target)
		if err != nil {
			l.Log.Info("a connection was not forwarded", "from", c.RemoteAddr().String(), "error", err)
			return
		}
		forward(ctx, inner, out)
	})
	return nil
}

// slots bound the handshakes at the same time: those of each machine, and those of all strangers.
type slots struct {
	mutex  sync.Mutex
	places map[netip.Addr]chan struct{}
}

func (s *slots) of(a netip.Addr) chan struct{} {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.places[a] == nil {
		s.places[a] = make(chan struct{}, maxHandshakes)
	}
	return s.places[a]
}

// known returns the address that a connection comes from if it is one of the other machines', and else no address.
func (l *Link) known(a net.Addr) netip.Addr {
	from, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	for _, addrs := range l.Addresses() {
		if slices.Contains(addrs, from.Addr().Unmap()) {
			return from.Addr().Unmap()
		}
	}
	return netip.Addr{}
}

// handshake finds out who connects, and to which socket.
func (l *Link) handshake(ctx context.Context, c net.Conn) (*tls.Conn, string, error) {
	config, err := l.TLS()
	if err != nil {
		return nil, "", err
	}
	config.ClientAuth = tls.RequireAnyClientCert // VerifyConnection checks it
	for _, ch := range l.Channels {
		config.NextProtos = append(config.NextProtos, ch.Protocol)
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	inner := tls.Server(c, config)
	if err := inner.HandshakeContext(ctx); err != nil {
		return nil, "", fmt.Errorf("checking who connects: %w", err)
	}
	protocol := inner.ConnectionState().NegotiatedProtocol
	for _, ch := range l.Channels {
		if ch.Protocol == protocol {
			return inner, ch.Target, nil
		}
	}
	return nil, "", fmt.Errorf("protocol %q is not known", protocol)
}

// Lead has the sockets lead to the other machines until ctx ends. Machines that are added get theirs within again.
func (l *Link) Lead(ctx context.Context, again time.Duration) {
	var running sync.WaitGroup
	defer running.Wait()
	known := map[string]bool{}
	for {
		for node := range l.Addresses() {
			if node == l.Node || known[node] {
				continue
			}
			known[node] = true
			for _, ch := range l.Channels {
				running.Go(func() { l.lead(ctx, ch, node) })
			}
		}
		if !wait(ctx, again) {
			return
		}
	}
}

// lead has one socket lead to a node.
func (l *Link) lead(ctx context.Context, ch Channel, node string) {
	log := l.Log.With("node", node, "channel", ch.Protocol)
	var listener net.Listener
	for logged := false; listener == nil; {
		var err error
		if listener, err = listenUnix(ctx, ch.Source(node)); err == nil {
			break
		}
		if !logged {
			logged = true
			log.Error("a node's database cannot be reached", "error", err)
		}
		if !wait(ctx, retry) {
			return
		}
	}
	var mutex sync.Mutex
	logged := ""
	reached := func(err error) {
		text := ""
		if err != nil {
			text = err.Error()
		}
		mutex.Lock()
		defer mutex.Unlock()
		if text != logged && text != "" {
			log.Info("a node's database is not reached", "error", err)
		}
		logged = text
	}
	l.accept(ctx, listener, func(ctx context.Context, c net.Conn) {
		out, err := l.dial(ctx, ch, node)
		reached(err)
		if err == nil {
			forward(ctx, c, out)
		}
	})
}

// dial connects to a node, at any of its addresses.
func (l *Link) dial(ctx context.Context, ch Channel, node string) (net.Conn, error) {
	addrs := l.Addresses()[node]
	err := fmt.Errorf("node %s has no address", node)
	for _, a := range addrs {
		config, tlsErr := l.TLS()
		if tlsErr != nil {
			return nil, tlsErr
		}
		config.NextProtos = []string{ch.Protocol}
		d := tls.Dialer{Config: config}
		var c net.Conn
		ctx, cancel := context.WithTimeout(ctx, dialWithin/time.Duration(len(addrs)))
		c, err = d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, uint16(l.Port)).String())
		cancel()
		if err == nil {
			return c, nil
		}
		err = fmt.Errorf("connecting to node %s: %w", node, err)
	}
	return nil, err
}

// wait waits, and returns false if ctx has ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// accept handles the listener's connections until ctx ends, and closes each when its handler returns.
func (l *Link) accept(ctx context.Context, listener net.Listener, handle func(context.Context, net.Conn)) {
	var running sync.WaitGroup
	defer running.Wait()
	stop := context.AfterFunc(ctx, func() { listener.Close() }) //nolint:errcheck // nothing is written to it
	defer stop()
	for {
		c, err := listener.Accept()
		if ctx.Err() != nil {
			return
		}
		if err != nil { // such as too many open files
			l.Log.Warn("a connection was not accepted", "at", listener.Addr().String(), "error", err)
			wait(ctx, retry)
			continue
		}
		running.Go(func() {
			defer c.Close() //nolint:errcheck // the other side has seen the end
			handle(ctx, c)
		})
	}
}

// listenUnix listens on a socket that only its owner can use.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of a socket: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing an earlier socket: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("making a socket: %w", err)
	}
	return listener, nil
}

// forward copies in both directions until one side ends. A connection of OVSDB is never half closed.
func forward(ctx context.Context, a, b net.Conn) {
	var closing sync.Once
	closeBoth := func() {
		closing.Do(func() {
			a.Close() //nolint:errcheck // what was not sent is lost with the connection
			b.Close() //nolint:errcheck // as above
		})
	}
	stop := context.AfterFunc(ctx, closeBoth)
	defer stop()
	var running sync.WaitGroup
	for _, d := range [][2]net.Conn{{a, b}, {b, a}} {
		running.Go(func() {
			defer closeBoth()
			io.Copy(d[0], d[1]) //nolint:errcheck // either side may end at any time
		})
	}
	running.Wait()
}
