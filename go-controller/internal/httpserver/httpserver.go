package httpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
)

// ErrNoToken means that a request has no bearer token.
var ErrNoToken = errors.New("the request has no token")

// Serve answers until ctx ends, and then closes the listener and all connections. A request's context ends with ctx.
func Serve(ctx context.Context, l net.Listener, h *http.Server) error {
	h.BaseContext = func(net.Listener) context.Context { return ctx }
	defer context.AfterFunc(ctx, func() { _ = h.Close() })()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Token is the bearer token of a request (RFC 6750 section 2.1), or ErrNoToken.
func Token(r *http.Request) (string, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return "", ErrNoToken
	}
	return token, nil
}
