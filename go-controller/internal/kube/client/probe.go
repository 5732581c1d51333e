package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// Answer is what an API server says about itself.
type Answer struct {
	Server  string    // its URL
	Version string    // "v1.36.3"
	Date    time.Time // its clock, cut to the second (RFC 9110 section 6.6.1); zero when it sends none
	Asked   time.Time // by our clock
	Read    time.Time // by our clock
}

// Skew is how far our clock is ahead of the server's. It is 0 as long as both may be the same.
func (a Answer) Skew() time.Duration {
	switch earliest, latest := a.Date, a.Date.Add(time.Second); {
	case a.Date.IsZero():
		return 0
	case a.Asked.After(latest):
		return a.Asked.Sub(latest)
	case a.Read.Before(earliest):
		return a.Read.Sub(earliest)
	}
	return 0
}

// Probe asks an API server for its version, once.
func Probe(ctx context.Context, k config.Kubernetes, agent string) (Answer, error) {
	rc, err := restConfig(k)
	if err != nil {
		return Answer{}, err
	}
	rc.UserAgent = agent
	base, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return Answer{}, fmt.Errorf("reading the address of the API server %q: %w", rc.Host, err)
	}
	client, err := rest.HTTPClientFor(rc)
	if err != nil {
		return Answer{}, fmt.Errorf("preparing the client of the API server %s: %w", base, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return Answer{}, fmt.Errorf("asking the API server %s: %w", base, err)
	}
	a := Answer{Server: base.String(), Asked: time.Now()}
	resp, err := client.Do(req)
	if err != nil {
		return a, fmt.Errorf("asking the API server %s: %w", base, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	a.Read = time.Now()
	if err != nil {
		return a, fmt.Errorf("asking the API server %s: %w", base, err)
	}
	if resp.StatusCode != http.StatusOK {
		return a, fmt.Errorf("asking the API server %s: it answers %s", base, resp.Status)
	}
	var v version.Info
	if err := json.Unmarshal(body, &v); err != nil {
		return a, fmt.Errorf("asking the API server %s for its version: %w", base, err)
	}
	a.Version = v.GitVersion
	a.Date, _ = http.ParseTime(resp.Header.Get("Date")) // without a date: the zero time
	return a, nil
}
