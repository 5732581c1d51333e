package master

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/leader"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// /readyz says in words what is missing, at every stage.
func TestReady(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	clients, err := client.New(config.Kubernetes{APIServer: server.URL}, component)
	if err != nil {
		t.Fatal(err)
	}
	m := &master{config: config.DefaultMaster(), clients: clients}
	m.config.LeaderElect.Enabled = false
	want := func(text string) {
		t.Helper()
		err := m.ready()
		if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text) ||
			strings.Contains(err.Error(), "%!")) {
			t.Errorf("ready: %v, want %q", err, text)
		}
	}
	want("the API server " + server.URL + " does not answer")
	m.config.LeaderElect.Enabled = true
	if m.leader, err = leader.New(clients, m.config.LeaderElect, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	want("was not read yet: the API server does not answer") // a standby
	m.leading = true
	m.database = ovsdb.New(m.config.NB, nb.NewSchema(), slog.New(slog.DiscardHandler))
	want("the Northbound database is not connected yet")
	if err := notConnected(errors.New("refused")); !strings.Contains(err.Error(), "not connected: refused") {
		t.Error(err)
	}
}

// A loop that has not turned for a while is an error that says for how long.
func TestTurning(t *testing.T) {
	if err := turning(time.Now().Add(-turnWithin/2), turnWithin); err != nil {
		t.Error(err)
	}
	if err := turning(time.Now().Add(-time.Minute), turnWithin); err == nil || !strings.Contains(err.Error(), "for 1m0s") {
		t.Errorf("a loop that last turned a minute ago: %v", err)
	}
}

// A configuration that can't work is an error at once, not a server that never gets ready.
func TestRunRefuses(t *testing.T) {
	for want, alter := range map[string]func(*config.Master){
		"no API server given": func(m *config.Master) { m.Kubernetes = config.Kubernetes{} },
		"loading certificate /nonexistent": func(m *config.Master) {
			m.NB = config.OVSDB{Addresses: []string{"ssl:h:1"}, Keys: config.Keys{PrivKey: "/nonexistent", Cert: "/nonexistent",
				CACert: "/nonexistent"}}
		},
		"--metrics-bind-address nowhere:80": func(m *config.Master) { m.Metrics = "nowhere:80:80" },
	} {
		m := config.DefaultMaster()
		m.Kubernetes.APIServer, m.Metrics = "http://127.0.0.1:1", "127.0.0.1:0"
		alter(&m)
		if err := Run(t.Context(), m, slog.New(slog.DiscardHandler), nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
