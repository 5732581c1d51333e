package rig

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/northbound-net/northbound/test/scale/process"
)

// metricsAddr is the address of the metrics of the only master.
const metricsAddr = "127.0.0.1:9409"

// Master is a running `ovnkube master`.
type Master struct {
	*process.Process
	Started time.Time // when it was executed
	before  Counts    // what had arrived by then
	url     string
	http    *http.Client
}

// StartMaster executes the only master and returns at once.
func (r *Rig) StartMaster(ctx context.Context) (*Master, error) {
	return r.StartMasterAt(ctx, metricsAddr, "--leader-elect=false")
}

// StartMasterAt executes one of several masters, with more flags, and returns at once.
func (r *Rig) StartMasterAt(ctx context.Context, metricsAddr string, flags ...string) (*Master, error) {
	before, err := r.received(ctx)
	if err != nil {
		return nil, err
	}
	r.masters++
	m := &Master{before: before, url: "http://" + metricsAddr, http: &http.Client{Timeout: 10 * time.Second},
		Started: time.Now()}
	p, err := process.Start("ovnkube master", filepath.Join(r.Dir, fmt.Sprintf("master-%d.log", r.masters)),
		r.programs.OVNKube, append([]string{"master", "--kubeconfig", r.kubeconfig, "--nb-address", "unix:" + r.NB.Socket,
			"--metrics-bind-address", metricsAddr}, flags...)...)
	m.Process = p
	return m, err
}

// Stop ends the master with SIGTERM.
func (m *Master) Stop() error {
	m.http.CloseIdleConnections()
	return m.Process.Stop(stopGrace)
}

// WaitReady waits until /readyz is ok and returns when that was.
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

// metrics reads the master's metrics.
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
