package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

func TestProbe(t *testing.T) {
	date := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("request %s, %v", r.URL, r.Header)
		}
		w.Header().Set("Date", date)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`))
	}))
	defer s.Close()
	k := config.Kubernetes{APIServer: s.URL, Token: "secret"}
	a, err := Probe(t.Context(), k, "test")
	if err != nil || a.Version != "v1.36.3" || a.Date.Format(http.TimeFormat) != date {
		t.Errorf("%+v, %v", a, err)
	}
	if skew := a.Skew(); skew < 59*time.Minute || skew > 61*time.Minute {
		t.Errorf("skew %s, want an hour", skew)
	}
	status = http.StatusUnauthorized
	if _, err := Probe(t.Context(), k, "test"); err == nil ||
		!strings.Contains(err.Error(), "it answers 401 Unauthorized") {
		t.Error(err)
	}
	s.Close()
	if _, err := Probe(t.Context(), k, "test"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}

func TestSkew(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		date, asked, read, want time.Duration // after noon
	}{
		{0, 0, time.Second, 0},
		{0, 900 * time.Millisecond, 950 * time.Millisecond, 0}, // the server's second has not ended
		{0, 3 * time.Second, 4 * time.Second, 2 * time.Second},
		{10 * time.Second, 0, time.Second, -9 * time.Second},
		{0, -5 * time.Second, 5 * time.Second, 0}, // a slow answer tells nothing
	} {
		a := Answer{Date: noon.Add(c.date), Asked: noon.Add(c.asked), Read: noon.Add(c.read)}
		if got := a.Skew(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if got := (Answer{Asked: noon}).Skew(); got != 0 {
		t.Errorf("without a date: %s", got)
	}
}
