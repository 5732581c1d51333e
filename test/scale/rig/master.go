package rig

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/northbound-net/northbound/test/scale/process"
)

// Master is a running `ovnkube master`.
type Master struct {
	*process.Process
	Started time.Time // when it was executed
	rig     *Rig
	url     string
	http    *http.Client
}

// StartMaster executes the master and returns at once.
func (r *Rig) StartMaster() (*Master, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	r.masters++
	m := &Master{rig: r, url: "http://" + addr, http: &http.Client{Timeout: 10 * time.Second}, Started: time.Now()}
	m.Process, err = process.Start("ovnkube master", filepath.Join(r.Dir, fmt.Sprintf("master-%d.log", r.masters)), r.programs.OVNKube,
		"master", "--kubeconfig", r.kubeconfig, "--nb-address", "unix:"+r.NB.Socket, "--metrics-bind-address", addr)
	return m, err
}

// freeAddr is a loopback address that nobody listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// Stop ends the master in an orderly way.
func (m *Master) Stop() error {
	m.http.CloseIdleConnections()
	return m.Process.Stop(stopGrace)
}

// WaitReady waits until /readyz is ok and tells when that was.
func (m *Master) WaitReady(ctx context.Context) (time.Time, error) {
	err := waitFor(ctx, m.Process, func() bool {
		resp, err := m.http.Get(m.url + "/readyz")
		if err != nil {
			return false
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.Body.Close() == nil && err == nil && resp.StatusCode == http.StatusOK
	})
	return time.Now(), err
}

// metrics reads what the master says of itself.
func (m *Master) metrics(ctx context.Context) (exposition, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+"/metrics", nil)
	if err != nil {
		return "", fmt.Errorf("reading the master's metrics: %w", err)
	}
	resp, err := m.http.Do(req)
	if err != nil {
		return "", fmt.Errorf("reading the master's metrics: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("reading the master's metrics: %w", err)
	}
	return exposition(b), nil
}
