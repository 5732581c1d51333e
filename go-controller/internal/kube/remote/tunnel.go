package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnel is one connection through the API server and the kubelet to a port of a pod. Nothing listens on this machine.
type tunnel struct {
	httpstream.Stream
	connection httpstream.Connection
	failure    chan error // what the kubelet says when it cannot connect; at most one
	close      func()
}

// tunnel connects to the port of a server.
func (s *Session) tunnel(ctx context.Context, to Server) (*tunnel, error) {
	url := s.Kube.CoreV1().RESTClient().Post().Namespace(s.Namespace).Resource("pods").Name(to.pod).
		SubResource("portforward").URL()
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, s.config)
	if err != nil {
		return nil, fmt.Errorf("preparing a websocket: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(s.config)
	if err != nil {
		return nil, fmt.Errorf("preparing SPDY: %w", err)
	}
	dialer := portforward.NewFallbackDialerForStreaming(websocket,
		spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) })
	connection, err := dial(ctx, dialer)
	if err != nil {
		return nil, err
	}
	t := &tunnel{connection: connection, failure: make(chan error, 1)}
	t.close = sync.OnceFunc(func() { _ = connection.Close() })
	if err := t.open(to.Place.Port()); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// dialTimeout limits how long it may take to connect.
const dialTimeout = 45 * time.Second

// dial connects. The dialer knows no context: a connection that comes too late is closed.
func dial(ctx context.Context, d httpstream.Dialer) (httpstream.Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	type result struct {
		connection httpstream.Connection
		err        error
	}
	done := make(chan result, 1)
	go func() {
		connection, _, err := d.Dial(portforward.PortForwardProtocolV1Name)
		done <- result{connection, err}
	}()
	select {
	case r := <-done:
		return r.connection, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.connection.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// open makes the two streams that the kubelet expects for a connection. Source: Kubernetes API, pods/portforward.
func (t *tunnel) open(port int) error {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := t.connection.CreateStream(headers)
	if err != nil {
		return fmt.Errorf("opening the stream for errors: %w", err)
	}
	if err := failures.Close(); err != nil { // for writing
		return fmt.Errorf("closing our side of the stream for errors: %w", err)
	}
	go func() {
		if text, err := io.ReadAll(io.LimitReader(failures, 4096)); err == nil && len(text) > 0 {
			t.failure <- errors.New(strings.TrimSpace(string(text)))
		}
		close(t.failure)
	}()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	if t.Stream, err = t.connection.CreateStream(headers); err != nil {
		return fmt.Errorf("opening the stream for data: %w", err)
	}
	return nil
}

// reason is why a request over the tunnel failed: what the kubelet says, or else err.
func (t *tunnel) reason(err error) error {
	select {
	case said := <-t.failure:
		if said != nil {
			return said
		}
	case <-time.After(time.Second): // it comes with the end of the stream, or never
	}
	return err
}

// Close ends the connection.
func (t *tunnel) Close() error { t.close(); return nil }

// The rest of net.Conn. A tunnel has no addresses and no deadlines; its context ends it.

func (t *tunnel) LocalAddr() net.Addr              { return address{} }
func (t *tunnel) RemoteAddr() net.Addr             { return address{} }
func (t *tunnel) SetDeadline(time.Time) error      { return nil }
func (t *tunnel) SetReadDeadline(time.Time) error  { return nil }
func (t *tunnel) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "tunnel" }
func (address) String() string  { return "tunnel" }
