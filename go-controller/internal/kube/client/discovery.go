package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// Discovery asks an API server which kinds it serves.
type Discovery struct {
	http *http.Client
	url  string
}

// Formats of the list of all kinds in one answer (Kubernetes API, aggregated discovery).
const allKinds = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

// discoveryTimeout limits one request.
const discoveryTimeout = 10 * time.Second

func newDiscovery(rc *rest.Config) (*Discovery, error) {
	u, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return nil, err
	}
	c, err := rest.HTTPClientFor(rc)
	return &Discovery{c, u.JoinPath("apis").String()}, err
}

// Tag returns the entity tag of the list of all kinds, which changes with the list. known is the tag of an earlier
// answer, or "": an API server that has the same list answers without it. Older API servers have no tag: that is an
// error.
func (d *Discovery) Tag(ctx context.Context, known string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", d.url, err)
	}
	request.Header.Set("Accept", allKinds)
	if known != "" {
		request.Header.Set("If-None-Match", known)
	}
	answer, err := d.http.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", d.url, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusNotModified {
		return known, nil
	}
	_, _ = io.Copy(io.Discard, answer.Body) // so that the connection can be used again
	tag := answer.Header.Get("ETag")
	if answer.StatusCode != http.StatusOK || tag == "" {
		return "", fmt.Errorf("asking %s: %s with entity tag %q, want a tag", d.url, answer.Status, tag)
	}
	return tag, nil
}
