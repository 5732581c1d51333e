package scrape

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// Strangers can open connections and ask without a token that is good. They must not take all places: of all hosts
// together maxConnections, of one host perHost. Tokens that are not known are asked about at a pace for each host.
const (
	maxConnections = 256
	perHost        = 8
	maxHosts       = 10_000 // whose pace is remembered
	hostPace       = 1      // questions a second
	hostBurst      = 5
)

// sharedListener accepts only so many connections of each host, and closes others. This machine itself has a place
// always: the kubelet's probes come from it.
type sharedListener struct {
	net.Listener

	mu   sync.Mutex
	open map[netip.Addr]int
	all  int
}

func newSharedListener(l net.Listener) *sharedListener {
	return &sharedListener{Listener: l, open: map[netip.Addr]int{}}
}

// Accept implements net.Listener.
func (l *sharedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := hostOf(c.RemoteAddr().String())
		if from == hostOf(c.LocalAddr().String()) {
			return c, nil
		}
		if l.take(from) {
			return &sharedConn{Conn: c, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		_ = c.Close() // there is nobody to tell
	}
}

func (l *sharedListener) take(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= maxConnections || l.open[from] >= perHost {
		return false
	}
	l.all++
	l.open[from]++
	return true
}

func (l *sharedListener) leave(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
	}
}

// sharedConn gives its place back when it is closed.
type sharedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *sharedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// hostOf is the host of an address; the zero value, which is a host like any other, for one that is not HOST:PORT.
func hostOf(address string) netip.Addr {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Addr{}
	}
	return to.Addr().Unmap().WithZone("")
}

// paces limits how often each host has the API server asked.
type paces struct {
	mu  sync.Mutex
	all *rate.Limiter
	of  map[netip.Addr]*rate.Limiter
}

func newPaces() *paces {
	return &paces{all: rate.NewLimiter(20, 40), of: map[netip.Addr]*rate.Limiter{}}
}

// allow tells whether the host may have the API server asked now. address is HOST:PORT.
func (p *paces) allow(address string) bool {
	host := hostOf(address)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[host] == nil {
		if len(p.of) >= maxHosts {
			p.of = map[netip.Addr]*rate.Limiter{}
		}
		p.of[host] = rate.NewLimiter(hostPace, hostBurst)
	}
	return p.of[host].Allow() && p.all.Allow()
}
