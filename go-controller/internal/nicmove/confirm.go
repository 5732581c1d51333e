package nicmove

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/ping"
)

// How long a target has to answer one request, and the pause between two requests.
const (
	askTimeout  = 2 * time.Second
	askInterval = 250 * time.Millisecond
)

// Target is a host or server outside. Its answer proves that the node is reachable.
type Target struct {
	name string
	ask  func(context.Context) error
}

// String names the target for people.
func (t *Target) String() string { return t.name }

func pingTarget(name string, a netip.Addr) *Target {
	return &Target{name, func(ctx context.Context) error { return ping.Send(ctx, netip.Addr{}, a, 0) }}
}

// ParseTarget reads HOST:PORT, which must accept a TCP connection, or an IP address, which must answer a ping.
func ParseTarget(s string) (*Target, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return pingTarget(s, a), nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("%q: want HOST:PORT or an IP address", s)
	}
	return &Target{s, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s)
		if err != nil {
			return err
		}
		return conn.Close()
	}}, nil
}

// APIServer is the Kubernetes API server at a URL; without a scheme, http is assumed. Any HTTP response counts as an
// answer.
func APIServer(url string) *Target {
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	return &Target{"the API server " + url, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(url, "/")+"/readyz", nil)
		if err != nil {
			return err
		}
		client := &http.Client{Transport: &http.Transport{
			// Only reachability is tested. The response is not used, and the request has no secrets.
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives: true,
		}}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}}
}

// defaultRouter finds a default router behind the NIC that answers a ping now. It returns nil if there is none.
func defaultRouter(ctx context.Context, d nicmove.Device) *Target {
	for _, r := range d.Routes {
		for _, hop := range r.Hops {
			if r.Dest.Bits() != 0 || !hop.Via.IsValid() {
				continue
			}
			via := hop.Via
			if via.IsLinkLocalUnicast() {
				continue // the move changes its zone
			}
			t := pingTarget("the default router "+via.String(), via)
			if t.tryOnce(ctx) == nil {
				return t
			}
		}
	}
	return nil
}

func (t *Target) tryOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return t.ask(ctx)
}

// await asks the target until it answers or the timeout ends. It calls beat before each request.
func (t *Target) await(ctx context.Context, timeout time.Duration, beat func()) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for {
		beat()
		err := t.tryOnce(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // an error after the timeout only says that time is up
			last = err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s does not answer within %s: %w", t, timeout, last)
			}
			return context.Cause(ctx)
		case <-time.After(askInterval):
		}
	}
}
