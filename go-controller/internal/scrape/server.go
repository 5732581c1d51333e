package scrape

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/northbound-net/northbound/go-controller/internal/httpserver"
)

const (
	maxHeader      = 16 << 10
	headerTimeout  = 5 * time.Second  // for a request's headers
	requestTimeout = 20 * time.Second // for a request as a whole
	daemonTimeout  = 10 * time.Second // for the daemon to answer
	reviewTimeout  = 5 * time.Second
	reviewHolds    = time.Minute // for so long, the API server is not asked about a token again
	knownFor       = time.Hour   // for so long, questions about a token that was good are not limited
)

// Errors of Review.
var (
	ErrRefused   = errors.New("the token is not valid")
	ErrForbidden = errors.New("the token's owner may not read metrics")
)

// Server serves the metrics of one daemon.
type Server struct {
	Daemon string // URL of its metrics
	// Review is nil when the owner of a token may read metrics. Otherwise it is ErrRefused, ErrForbidden or another error,
	// if nobody could be asked.
	Review func(ctx context.Context, token string) error
	Log    *slog.Logger

	once     sync.Once
	client   *http.Client
	reviews  *paces        // so that strangers can't have the API server asked without limit
	refusals *rate.Limiter // so that they can't fill the log

	mu    sync.Mutex
	known map[[sha256.Size]byte]time.Time // tokens that were good, and when
}

// Serve answers until ctx ends. Nobody can check the certificate: it is made at each start.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	certificate, err := selfSigned(time.Now())
	if err != nil {
		return err
	}
	l = tls.NewListener(newSharedListener(l), &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	})
	h := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout,
		WriteTimeout: requestTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)} // strangers' TLS errors
	if err := httpserver.Serve(ctx, l, h); err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}

// Handler answers requests for /metrics, and /healthz.
func (s *Server) Handler() http.Handler {
	s.once.Do(func() {
		s.client = &http.Client{Timeout: daemonTimeout}
		s.reviews, s.refusals = newPaces(), rate.NewLimiter(rate.Every(time.Minute), 10)
		s.known = map[[sha256.Size]byte]time.Time{}
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // who needs no token gets no place to keep
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /metrics", s.metrics)
	return mux
}

// metrics answers whoever may read them.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if code, err := s.admit(r); err != nil {
		if s.refusals.Allow() {
			s.Log.Warn("metrics refused", "caller", r.RemoteAddr, "error", err)
		}
		w.Header().Set("Connection", "close")
		http.Error(w, err.Error(), code)
		return
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, s.Daemon, nil)
	if err == nil {
		request.Header.Set("Accept", r.Header.Get("Accept"))
		err = s.forward(w, request)
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("asking the daemon: %v: does it run?", err), http.StatusBadGateway)
	}
}

// forward answers with what the daemon does.
func (s *Server) forward(w http.ResponseWriter, request *http.Request) error {
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // it fails if one of the two has gone: the answer is cut then
	return nil
}

// admit is an error, and its status, unless the caller may read metrics.
func (s *Server) admit(r *http.Request) (code int, err error) {
	token, err := httpserver.Token(r)
	if err != nil {
		return http.StatusUnauthorized, err
	}
	key := sha256.Sum256([]byte(token))
	s.mu.Lock()
	good, known := s.known[key]
	s.mu.Unlock()
	now := time.Now()
	if known && now.Sub(good) < reviewHolds {
		return 0, nil
	}
	known = known && now.Sub(good) < knownFor
	if !known && !s.reviews.allow(r.RemoteAddr) {
		return http.StatusTooManyRequests, errors.New("too many unknown tokens: try again in a second")
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	err = s.Review(ctx, token)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, ErrRefused):
		delete(s.known, key)
		return http.StatusUnauthorized, err
	case errors.Is(err, ErrForbidden):
		delete(s.known, key)
		return http.StatusForbidden, err
	case err != nil && known:
		return 0, nil // while the API server is away, metrics matter most
	case err != nil:
		return http.StatusServiceUnavailable, fmt.Errorf("asking the API server about the token: %w", err)
	}
	for k, at := range s.known {
		if now.Sub(at) >= knownFor {
			delete(s.known, k)
		}
	}
	s.known[key] = now
	return 0, nil
}
