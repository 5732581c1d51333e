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

// How long one question to a target may take, and the time between two.
const (
	askTimeout  = 2 * time.Second
	askInterval = 250 * time.Millisecond
)

// Target is something outside that answers when the node is reachable.
type Target struct {
	name string
	ask  func(context.Context) error
}

// String names the target for a person.
func (t *Target) String() string { return t.name }

// ParseTarget reads HOST:PORT, which answers when it accepts a connection, or
// an IP address, which answers to an echo request.
func ParseTarget(s string) (*Target, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return &Target{s, func(ctx context.Context) error { return ping.Send(ctx, netip.Addr{}, a, 0) }}, nil
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

// APIServer is a Kubernetes API server by its URL; no scheme means http. Any
// answer will do, also a refusal.
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
			// Nothing is believed that it says and nothing is told it: this
			// asks whether it can be reached.
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

// router is a default router behind the NIC that answers a ping now; nil when
// there is none.
func router(ctx context.Context, d nicmove.Device) *Target {
	for _, r := range d.Routes {
		for _, hop := range r.Hops {
			if r.Dest.Bits() != 0 || !hop.Via.IsValid() {
				continue
			}
			via := hop.Via
			if via.IsLinkLocalUnicast() {
				continue // its zone is to change
			}
			one, done := context.WithTimeout(ctx, askTimeout)
			err := ping.Send(one, netip.Addr{}, via, 0)
			done()
			if err == nil {
				return &Target{"the default router " + via.String(), func(ctx context.Context) error { return ping.Send(ctx, netip.Addr{}, via, 0) }}
			}
		}
	}
	return nil
}

// await asks the target until it answers, for at most this long. beat is
// called before each question.
func (t *Target) await(ctx context.Context, timeout time.Duration, beat func()) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for {
		beat()
		one, done := context.WithTimeout(ctx, askTimeout)
		err := t.ask(one)
		done()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // the last one's error is only that time is up
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
