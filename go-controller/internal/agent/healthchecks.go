package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
)

// healthTimeout bounds a request for a service's health.
const healthTimeout = 5 * time.Second

// healthChecks answers load balancers, on every address of the node, whether the node
// has endpoints of a service. One goroutine calls its methods.
type healthChecks struct {
	log      *slog.Logger
	unserved prometheus.Gauge // ports that can't be listened on
	servers  map[uint16]*healthServer
	failed   map[uint16]string // why a port can't be listened on
	serving  sync.WaitGroup
}

func newHealthChecks(log *slog.Logger, unserved prometheus.Gauge) *healthChecks {
	return &healthChecks{log: log, unserved: unserved, servers: map[uint16]*healthServer{}, failed: map[uint16]string{}}
}

// healthServer is the server of one port.
type healthServer struct {
	http     *http.Server
	listener net.Listener
	ended    atomic.Bool // it does not listen any more
	answer   atomic.Pointer[healthAnswer]
}

// healthAnswer is the body of an answer; load balancers know it from kube-proxy.
type healthAnswer struct {
	Service struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"service"`
	LocalEndpoints      int  `json:"localEndpoints"`
	ServiceProxyHealthy bool `json:"serviceProxyHealthy"`
}

// set serves exactly these ports. It tries again a port that is in use by somebody
// else, or whose server has ended. healthy tells whether the path to the endpoints is
// in place.
func (h *healthChecks) set(checks []serviceport.Check, healthy bool) {
	wanted := map[uint16]bool{}
	for _, c := range checks {
		wanted[c.Port] = true
		s := h.servers[c.Port]
		if s == nil || s.ended.Load() {
			s = h.listen(c)
		}
		if s != nil {
			s.say(c, healthy)
		}
	}
	for port, s := range h.servers {
		if !wanted[port] {
			_ = s.http.Close() // it is not used any more
			delete(h.servers, port)
		}
	}
	for port := range h.failed {
		if !wanted[port] {
			delete(h.failed, port)
		}
	}
	h.unserved.Set(float64(len(h.failed)))
}

// doubt answers on all ports that the path to the endpoints may not be in place.
func (h *healthChecks) doubt() {
	for _, s := range h.servers {
		a := *s.answer.Load()
		a.ServiceProxyHealthy = false
		s.answer.Store(&a)
	}
}

// listen starts a port's server. It returns nil when the port can't be used.
func (h *healthChecks) listen(c serviceport.Check) *healthServer {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", c.Port))
	if err != nil {
		if h.failed[c.Port] != err.Error() {
			h.log.Warn("health check port of a service can't be served", "service", c.Service, "port", c.Port, "error", err)
		}
		h.failed[c.Port] = err.Error()
		return nil
	}
	delete(h.failed, c.Port)
	s := &healthServer{listener: l}
	s.say(c, false) // until the caller says otherwise
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: healthTimeout, ReadTimeout: healthTimeout, WriteTimeout: healthTimeout,
		ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelWarn),
	}
	h.servers[c.Port] = s
	h.serving.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			h.log.Warn("health check port of a service is not served any more",
				"service", c.Service, "port", c.Port, "error", err)
			_ = s.http.Close() // who is connected would get this answer for ever
			s.ended.Store(true)
		}
	})
	return s
}

// close ends all servers.
func (h *healthChecks) close() {
	h.set(nil, false)
	h.serving.Wait()
}

func (s *healthServer) say(c serviceport.Check, healthy bool) {
	a := healthAnswer{LocalEndpoints: c.Endpoints, ServiceProxyHealthy: healthy}
	a.Service.Namespace, a.Service.Name = c.Service.Namespace, c.Service.Name
	s.answer.Store(&a)
}

// ServeHTTP implements http.Handler: 200 when connections may come, else 503.
func (s *healthServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	a := s.answer.Load()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(a.LocalEndpoints))
	if a.LocalEndpoints == 0 || !a.ServiceProxyHealthy {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(a) // who asks may have gone
}
