package client

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// A program that is told to end does not wait for an API server that accepts and never answers.
func TestWaitForServerEnds(t *testing.T) {
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	clients, err := New(config.Kubernetes{APIServer: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- clients.WaitForServer(ctx, slog.New(slog.DiscardHandler)) }()
	<-asked
	cancel()
	if err := <-done; err == nil {
		t.Error("no error, want the context's")
	}
}
