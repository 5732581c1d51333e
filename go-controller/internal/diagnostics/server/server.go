package server

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
	"github.com/northbound-net/northbound/go-controller/internal/httpserver"
)

const (
	maxRequest     = 64 << 10         // bytes of a request's body
	maxHeader      = 16 << 10         // bytes of its headers
	maxConnections = 64               // at the same time
	maxRunning     = 8                // tools of an account at the same time
	maxTime        = time.Hour        // that a tool may run
	headerTimeout  = 5 * time.Second  // for a request's headers
	requestTimeout = 10 * time.Second // for a request as a whole
	frameTimeout   = 30 * time.Second // for a caller to take a part of the answer
	reviewTimeout  = 10 * time.Second
	endTimeout     = 2 * time.Second // for a tool to end when its caller has gone
	maxLogged      = 1024            // bytes of a request's arguments in the log
)

// Caller is who a token belongs to.
type Caller struct {
	Account string // name of the ServiceAccount in the namespace of this server
	// Credential identifies the token in the API server's audit log, which says who created it.
	Credential string
}

// ErrRefused means that a token is not valid, or not for this server.
var ErrRefused = errors.New("the token is refused")

// Server answers the callers of one place on one node.
type Server struct {
	Place diagnostics.Place
	Node  string
	Tools []diagnostics.Tool
	// Review asks who a token belongs to. It returns ErrRefused for nobody that may ask this server.
	Review func(ctx context.Context, token, audience string) (Caller, error)
	Log    *slog.Logger

	once     sync.Once
	nonce    string                   // of this start of the server: see diagnostics.Audience
	reviews  *rate.Limiter            // so that processes on the node can't have the API server asked without limit
	refusals *rate.Limiter            // so that they can't fill the log
	running  map[string]chan struct{} // by account
}

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	l = netutil.LimitListener(l, maxConnections)
	h := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout,
		MaxHeaderBytes: maxHeader, IdleTimeout: requestTimeout}
	if err := httpserver.Serve(ctx, l, h); err != nil {
		return fmt.Errorf("serving diagnostics: %w", err)
	}
	return nil
}

// Handler answers requests for tools, and /healthz.
func (s *Server) Handler() http.Handler {
	s.once.Do(func() {
		s.nonce = rand.Text()
		s.reviews, s.refusals = rate.NewLimiter(5, 20), rate.NewLimiter(1, 20)
		s.running = map[string]chan struct{}{}
		for _, t := range s.Tools {
			if s.running[t.Account] == nil {
				s.running[t.Account] = make(chan struct{}, maxRunning)
			}
		}
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET "+diagnostics.IdentityPath, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(diagnostics.Identity{Nonce: s.nonce}) // it fails if the caller has gone
	})
	for _, t := range s.Tools {
		mux.HandleFunc("POST "+diagnostics.Path(t.Name), func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, t) })
	}
	return mux
}

// answer runs a tool for a caller who may use it.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, t diagnostics.Tool) {
	// Before any answer: a connection that is closed with unread bytes is reset, and the answer may be lost.
	body, badBody := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	caller, code, err := s.caller(r)
	if err == nil && caller.Account != t.Account {
		code = http.StatusForbidden
		err = fmt.Errorf("%s: ServiceAccount %q may not use it: want a token of %s", t.Name, caller.Account, t.Account)
	}
	var request diagnostics.Request
	var command []string
	if err == nil {
		code = http.StatusBadRequest
		if err = errors.Join(badBody, json.Unmarshal(body, &request)); err != nil {
			err = fmt.Errorf("reading the request: %w", err)
		} else {
			command, err = t.Command(request.Arguments)
		}
	}
	if err == nil {
		select {
		case s.running[t.Account] <- struct{}{}:
			defer func() { <-s.running[t.Account] }()
		default:
			code = http.StatusServiceUnavailable
			err = fmt.Errorf("%d tools are running: try again later", maxRunning)
		}
	}
	log := s.Log.With("tool", t.Name, "arguments", brief(request.Arguments), "account", caller.Account, "credential",
		caller.Credential)
	if err != nil {
		if caller.Account != "" || s.refusals.Allow() {
			log.Warn("diagnostics refused", "error", err)
		}
		http.Error(w, err.Error(), code)
		return
	}
	log.Info("running a tool for diagnostics")
	s.run(r.Context(), w, command, t.Redact)
}

// brief is the beginning of arguments, for the log.
func brief(args []string) string {
	text := strings.Join(args, " ")
	if len(text) > maxLogged {
		return strings.ToValidUTF8(text[:maxLogged], "") + " ..."
	}
	return text
}

// caller is who sent a request. The code is that of the answer if there is an error.
func (s *Server) caller(r *http.Request) (c Caller, code int, err error) {
	token, err := httpserver.Token(r)
	if err != nil {
		return c, http.StatusUnauthorized, err
	}
	audience := diagnostics.Audience(s.Place, s.Node, s.nonce)
	if !claims(token, audience) {
		return c, http.StatusUnauthorized, fmt.Errorf("%w: want one of audience %s", ErrRefused, audience)
	}
	if !s.reviews.Allow() {
		return c, http.StatusTooManyRequests, errors.New("too many requests: try again in a second")
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	c, err = s.Review(ctx, token, audience)
	switch {
	case errors.Is(err, ErrRefused):
		return c, http.StatusUnauthorized, err
	case err != nil:
		return c, http.StatusServiceUnavailable, fmt.Errorf("asking the API server about the token: %w", err)
	}
	return c, 0, nil
}

// claims tells whether a token says of itself that it is for an audience. Whether that is true, only the API server
// knows; but it need not be asked about others. Source: RFC 7519 section 4.1.3.
func claims(token, audience string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var payload struct {
		Audience []string `json:"aud"`
	}
	return json.Unmarshal(raw, &payload) == nil && slices.Contains(payload.Audience, audience)
}

// run runs a command until it ends, its caller has gone or does not read any more, or maxTime is over. It writes the
// output while it comes.
func (s *Server) run(ctx context.Context, w http.ResponseWriter, command []string, redact bool) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil { // the request has been read
		s.Log.Debug("lifting the deadline of a connection", "error", err)
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := &frames{w: w, end: cancel, flush: control.Flush, limit: func() error {
		return control.SetWriteDeadline(time.Now().Add(frameTimeout))
	}}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "NORTHBOUND_LOG_LEVEL=warn") // ovnkube's own tools: their answer without their log
	cmd.Stdout, cmd.Stderr = out.part(false), out.part(true)
	censor := &redactor{to: out.part(false)}
	if redact {
		cmd.Stdout = censor
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endTimeout
	err := cmd.Run()
	_ = censor.flush()                  // it fails if the caller has gone
	exit := cmd.ProcessState.ExitCode() // -1 also if it could not start
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		text := "running " + strconv.Quote(command[0]) + ": " + err.Error() + "\n"
		_ = out.send(diagnostics.Frame{Stderr: []byte(text)}) // it fails if the caller has gone
	}
	_ = out.send(diagnostics.Frame{Exit: &exit})
}

// frames writes frames from several goroutines. If that fails, the command is ended.
type frames struct {
	mutex sync.Mutex
	w     io.Writer
	limit func() error // gives the next frame its time
	flush func() error
	end   func()
	err   error
}

func (f *frames) send(frame diagnostics.Frame) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, step := range []func() error{
		f.limit, func() error { return json.NewEncoder(f.w).Encode(frame) }, f.flush,
	} {
		if f.err == nil {
			f.err = step()
		}
	}
	if f.err != nil {
		f.end()
	}
	return f.err
}

// part is the writer of one of the two outputs.
func (f *frames) part(stderr bool) io.Writer { return part{f, stderr} }

type part struct {
	frames *frames
	stderr bool
}

// Write sends one frame. exec.Cmd writes at most 32 KiB at once.
func (p part) Write(b []byte) (int, error) {
	frame := diagnostics.Frame{Stdout: b}
	if p.stderr {
		frame = diagnostics.Frame{Stderr: b}
	}
	if err := p.frames.send(frame); err != nil {
		return 0, err
	}
	return len(b), nil
}
