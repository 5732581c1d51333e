package httpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// A request that is being answered when the server's context ends is told so, and the server returns without an error.
func TestServeEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan error, 1), make(chan error, 1)
	h := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		told <- context.Cause(r.Context())
	})}
	go func() { ended <- Serve(ctx, l, h) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if answer, err := client.Get("http://" + l.Addr().String()); err == nil { // else its connection was closed first
		answer.Body.Close()
	}
	if err := <-told; !errors.Is(err, context.Canceled) {
		t.Errorf("the request's context ended with %v, want %v", err, context.Canceled)
	}
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// A listener that fails is an error: it did not end because its context did.
func TestServeFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := Serve(t.Context(), l, &http.Server{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

func TestToken(t *testing.T) {
	for header, want := range map[string]string{"": "", "Bearer ": "", "Basic eA==": "", "Bearer a.b.c": "a.b.c"} {
		r := &http.Request{Header: http.Header{"Authorization": {header}}}
		got, err := Token(r)
		if got != want || (want == "") != errors.Is(err, ErrNoToken) {
			t.Errorf("%q: %q, %v; want %q", header, got, err, want)
		}
	}
}
