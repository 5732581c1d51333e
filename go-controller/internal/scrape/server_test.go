package scrape

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// bed is a server, its daemon, and an API server that knows two tokens.
type bed struct {
	*Server
	handler http.Handler
	asked   atomic.Int64
	away    atomic.Bool // the API server
	from    string      // the caller's HOST:PORT; "" for one that stays the same
}

func newBed(t *testing.T) *bed {
	t.Helper()
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the daemon got the caller's token")
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintln(w, "northbound_leader 1")
	}))
	t.Cleanup(daemon.Close)
	b := &bed{}
	b.Server = &Server{Daemon: daemon.URL, Log: slog.New(slog.DiscardHandler), Review: b.review}
	b.handler = b.Handler()
	return b
}

func (b *bed) review(_ context.Context, token string) error {
	b.asked.Add(1)
	switch {
	case b.away.Load():
		return errors.New("the API server is away")
	case token == "good":
		return nil
	case token == "somebody":
		return ErrForbidden
	}
	return ErrRefused
}

func (b *bed) get(path, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if b.from != "" {
		r.RemoteAddr = b.from
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

// serve listens on an address of this machine until the test ends.
func (b *bed) serve(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// healthz asks a server over TLS, from an address of this machine. The answer has to say that the connection ends.
func healthz(from, address string) error {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext}}
	answer, err := client.Get("https://" + address + "/healthz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (string(text) != "ok\n" || !answer.Close) {
		err = fmt.Errorf("the answer is %q, and the connection ends: %v", text, answer.Close)
	}
	return err
}

// Only those who may read metrics get them, and nobody gets anything else.
func TestWhoMayRead(t *testing.T) {
	b := newBed(t)
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/metrics", "", http.StatusUnauthorized}, {"/metrics", "forged", http.StatusUnauthorized},
		{"/metrics", "somebody", http.StatusForbidden}, {"/metrics", "good", http.StatusOK},
		{"/debug/pprof/", "good", http.StatusNotFound}, {"/readyz", "good", http.StatusNotFound},
		{"/healthz", "", http.StatusOK},
	} {
		w := b.get(c.path, c.token)
		if w.Code != c.want {
			t.Errorf("%s with token %q: %d %s; want %d", c.path, c.token, w.Code, w.Body, c.want)
		}
		if got := strings.Contains(w.Body.String(), "northbound_leader 1"); got != (c.token == "good" && c.want == 200) {
			t.Errorf("%s with token %q: %s", c.path, c.token, w.Body)
		}
	}
}

// The API server is asked about a good token once a minute. Strangers can't have it asked more often than the limit,
// and can't keep a known caller from being answered. A known caller is also answered while the API server is away.
func TestQuestionsAreLimited(t *testing.T) {
	b := newBed(t)
	for range 5 {
		if w := b.get("/metrics", "good"); w.Code != http.StatusOK {
			t.Fatalf("a good token: %d %s", w.Code, w.Body)
		}
	}
	if n := b.asked.Load(); n != 1 {
		t.Errorf("the API server was asked %d times about one token, want once", n)
	}
	for i := range 200 {
		b.get("/metrics", fmt.Sprint("forged-", i))
	}
	if n := b.asked.Load(); n > 20 {
		t.Errorf("the API server was asked %d times about 200 forged tokens, want at most 20", n)
	}
	b.from = "192.0.2.9:1"
	if w := b.get("/metrics", "somebody"); w.Code != http.StatusForbidden {
		t.Errorf("another host's token is not asked about while strangers send forged ones: %d %s", w.Code, w.Body)
	}
	b.from = ""
	if w := b.get("/metrics", "forged"); w.Code != http.StatusTooManyRequests {
		t.Errorf("one more forged token: %d, want %d", w.Code, http.StatusTooManyRequests)
	}
	for k := range b.known {
		b.known[k] = time.Now().Add(-2 * reviewHolds)
	}
	b.away.Store(true)
	if w := b.get("/metrics", "good"); w.Code != http.StatusOK {
		t.Errorf("a known token while the API server is away: %d %s", w.Code, w.Body)
	}
	for k := range b.known {
		b.known[k] = time.Now().Add(-2 * knownFor)
	}
	if w := b.get("/metrics", "good"); w.Code == http.StatusOK {
		t.Error("a token that was good two hours ago is still taken while the API server is away")
	}
}

// A daemon that does not answer is the caller's to know.
func TestDaemonAway(t *testing.T) {
	b := newBed(t)
	b.Daemon = "http://127.0.0.1:1/metrics"
	if w := b.get("/metrics", "good"); w.Code != http.StatusBadGateway {
		t.Errorf("%d %s, want %d", w.Code, w.Body, http.StatusBadGateway)
	}
}

// It speaks TLS alone.
func TestTLS(t *testing.T) {
	address := newBed(t).serve(t)
	if err := healthz("127.0.0.1", address); err != nil {
		t.Errorf("over TLS: %v", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if answer, err := client.Get("http://" + address + "/healthz"); err == nil {
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Error("it also answers without TLS")
		}
	}
}
