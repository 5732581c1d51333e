package client

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

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

// A command does not wait for a server whose certificate is another authority's, or for another name. A daemon does.
func TestReachServerRefusesCertificate(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"gitVersion":"v1"}`)
	}))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	own := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(own, block, 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ url, ca, want string }{
		{server.URL, "", "the certificate is refused: "}, {server.URL, own, ""},
		{"https://localhost:" + port, own, "valid for example.com"},
	} {
		clients, err := New(config.Kubernetes{APIServer: c.url, CACert: c.ca}, "test")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err = clients.ReachServer(ctx, slog.New(slog.DiscardHandler))
		if ctx.Err() != nil || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with CA %q: %v, want an error at once with %q", c.url, c.ca, err, c.want)
		}
		cancel()
	}
}

// A token goes to another machine over https only, wherever the configuration comes from.
func TestNoTokenInClearText(t *testing.T) {
	for _, c := range []struct {
		server string
		safe   bool
	}{
		{"http://192.0.2.1:8080", false}, {"http://[2001:db8::1]:8080", false}, {"192.0.2.1:8080", false},
		{"HTTP://api", false}, {"http://127.0.0.1.example", false}, {"https://192.0.2.1", true}, {"https://api", true},
		{"http://127.0.0.1:8080", true}, {"http://[::1]:8080", true}, {"localhost:8080", true},
	} {
		rc, err := restConfig(config.Kubernetes{APIServer: c.server, Token: "secret"})
		if c.safe && (err != nil || rc.BearerToken != "secret") {
			t.Errorf("--k8s-apiserver %s: %v, want a client with the token", c.server, err)
		}
		const why = "--k8s-token would be readable on the network: want https://"
		if !c.safe && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("--k8s-apiserver %s: %v, want it refused", c.server, err)
		}
		if _, err := restConfig(config.Kubernetes{APIServer: c.server}); err != nil {
			t.Errorf("--k8s-apiserver %s without a token: %v", c.server, err)
		}
		file := filepath.Join(t.TempDir(), "kubeconfig")
		text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, "+
			"clusters: [{name: k, cluster: {server: %q}}], users: [{name: u, user: {token: secret}}], "+
			"contexts: [{name: c, context: {cluster: k, user: u}}]}", c.server)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if rc, err := restConfig(config.Kubernetes{Kubeconfig: file}); !c.safe && err == nil && rc.BearerToken != "" {
			t.Errorf("a kubeconfig with %s: the token would be sent", c.server)
		}
	}
}
