package member

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// StartService starts a program in the member, and appends its output to LogDir/NAME.log.
func (m *Member) StartService(ctx context.Context, s Service) error {
	body, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding service %s: %w", s.Name, err)
	}
	_, err = m.ask(ctx, http.MethodPost, "/services", body)
	if err != nil {
		return fmt.Errorf("starting service %s/%s: %w", m.Spec.Name, s.Name, err)
	}
	return nil
}

// StopService sends a signal and waits until the service has ended. It succeeds if the service is not running.
func (m *Member) StopService(ctx context.Context, name string, signal syscall.Signal) error {
	_, err := m.ask(ctx, http.MethodDelete, fmt.Sprintf("/services/%s?signal=%d", url.PathEscape(name), int(signal)), nil)
	if err != nil {
		return fmt.Errorf("stopping service %s/%s: %w", m.Spec.Name, name, err)
	}
	return nil
}

// Services returns the status of every service that was started, by name.
func (m *Member) Services(ctx context.Context) ([]ServiceStatus, error) {
	b, err := m.ask(ctx, http.MethodGet, "/services", nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s for its services: %w", m.Spec.Name, err)
	}
	var all []ServiceStatus
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("asking %s for its services: %w", m.Spec.Name, err)
	}
	return all, nil
}

func (m *Member) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", m.Spec.socket())
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://init"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", strings.TrimSpace(string(b)))
	}
	return b, err
}

// Until calls done every 20 ms until it returns true. It fails if ctx ends, or if one of the named services has ended;
// the error then has the end of its log.
func (m *Member) Until(ctx context.Context, what string, done func(context.Context) bool, services ...string) error {
	for !done(ctx) {
		if err := m.running(ctx, services); err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (m *Member) running(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	all, err := m.Services(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		for _, n := range names {
			if s.Name == n && s.PID == 0 {
				return fmt.Errorf("%s/%s has ended: %s: %s", m.Spec.Name, n, s.Exit, m.LogTail(n))
			}
		}
	}
	return nil
}

// Ended returns an error if any service that was started has ended.
func (m *Member) Ended(ctx context.Context) error {
	all, err := m.Services(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return m.running(ctx, names)
}

// RestartService ends a service with a signal and starts it again with the same command.
func (m *Member) RestartService(ctx context.Context, name string, signal syscall.Signal) error {
	all, err := m.Services(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Name != name {
			continue
		}
		if err := m.StopService(ctx, name, signal); err != nil {
			return err
		}
		return m.StartService(ctx, s.Service)
	}
	return fmt.Errorf("restarting service %s/%s: it was never started", m.Spec.Name, name)
}
