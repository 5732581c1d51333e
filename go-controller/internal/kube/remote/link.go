package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
)

// link speaks HTTP with one server. Its requests share a tunnel.
type link struct {
	session   *Session
	to        Server
	transport *http.Transport

	mutex  sync.Mutex // a transport may dial after the request that it dials for has ended
	closed bool
	tunnel *tunnel // the last one
}

// identity asks which start of the server answers.
func (l *link) identity(ctx context.Context) (out diagnostics.Identity, err error) {
	answer, err := l.ask(ctx, http.MethodGet, diagnostics.IdentityPath, "", nil)
	if err != nil {
		return out, err
	}
	defer answer.Close()
	if err := json.NewDecoder(io.LimitReader(answer, 4096)).Decode(&out); err != nil {
		return out, fmt.Errorf("reading who the diagnostics server of node %s is: %w", l.to.Node, err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer, 4096)) // so that the next request can use the same tunnel
	return out, err
}

// ask sends a request. The answer is its body if its status is 200; any other is an error with the server's text.
func (l *link) ask(ctx context.Context, method, path, token string, body []byte) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if l.transport == nil {
		l.transport = &http.Transport{DialContext: l.dial}
	}
	answer, err := l.transport.RoundTrip(request)
	if err != nil {
		if t := l.last(); t != nil {
			err = t.reason(err)
		}
		return nil, fmt.Errorf("asking the diagnostics server of node %s: %w", l.to.Node, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
	if err != nil {
		text = []byte(err.Error())
	}
	return nil, fmt.Errorf("the diagnostics server of node %s: %s: %s", l.to.Node, answer.Status,
		strings.TrimSpace(string(text)))
}

func (l *link) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	t, err := l.session.tunnel(ctx, l.to)
	if err != nil {
		return nil, fmt.Errorf("connecting to pod %s: %w", l.to.pod, err)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.closed {
		t.close()
		return nil, net.ErrClosed
	}
	l.tunnel = t
	return t, nil
}

func (l *link) last() *tunnel {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.tunnel
}

func (l *link) close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.closed = true
	if l.tunnel != nil {
		l.tunnel.close()
	}
}
