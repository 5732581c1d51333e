package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const shutdownTimeout = 2 * time.Second

// Server is the HTTP server of one daemon.
type Server struct {
	listener net.Listener
	server   *http.Server
	log      *slog.Logger
}

// Probes answer the requests of probes: nil means yes.
type Probes struct {
	Alive func() error // for /healthz; nil: as long as the process answers
	Ready func() error // for /readyz
}

// Listen opens address ("host:port"; port 0 picks a free port).
func Listen(address string, metrics prometheus.Gatherer, p Probes, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on --metrics-bind-address %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", answer(p.Alive))
	mux.HandleFunc("/readyz", answer(p.Ready))
	return &Server{listener: l, log: log, server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}}, nil
}

// answer is 200, or 503 with why not.
func answer(probe func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if probe != nil {
			if err := probe(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ok")
	}
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := s.server.Shutdown(c); err != nil {
			s.log.Debug("closing the metrics server", "error", err)
		}
	})
	defer stop()
	if err := s.server.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		s.log.Error("metrics server", "error", err)
	}
}
