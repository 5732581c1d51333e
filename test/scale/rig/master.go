package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/northbound-net/northbound/test/scale/process"
)

// MetricsAddr is the address of the metrics of the only master.
const MetricsAddr = "127.0.0.1:9409"

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
	return r.StartMasterAt(ctx, MetricsAddr, "--leader-elect=false")
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
	kubeconfig := r.kubeconfig
	if r.Through != nil {
		kubeconfig = r.Through.Kubeconfig
	}
	command := append([]string{r.programs.OVNKube, "master", "--kubeconfig", kubeconfig, "--nb-address",
		"unix:" + r.NB.Socket, "--metrics-bind-address", metricsAddr}, flags...)
	if r.Within != "" { // the shell becomes the master
		command = append([]string{"/bin/sh", "-c", `echo 0 >"$0" && exec "$@"`, r.Within}, command...)
	}
	p, err := process.Start("ovnkube master", filepath.Join(r.Dir, fmt.Sprintf("master-%d.log", r.masters)), command[0],
		command[1:]...)
	m.Process = p
	return m, err
}

// Stop ends the master with SIGTERM.
func (m *Master) Stop() error {
	m.http.CloseIdleConnections()
	return m.Process.Stop(stopGrace)
}

// readyTimeout is for a master to be ready. It may have to write a large cluster first.
const readyTimeout = 10 * time.Minute

// WaitReady waits until /readyz is ok and returns when that was.
func (m *Master) WaitReady(ctx context.Context) (time.Time, error) {
	err := waitWithin(ctx, readyTimeout, m.Process, func() bool {
		resp, err := m.http.Get(m.url + "/readyz")
		if err != nil {
			return false
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.Body.Close() == nil && err == nil && resp.StatusCode == http.StatusOK
	})
	return time.Now(), err
}

// Readyz asks once whether the master is ready, and returns the status of HTTP and the answer's text.
func (m *Master) Readyz(ctx context.Context) (code int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+"/readyz", nil)
	if err != nil {
		return 0, "", fmt.Errorf("asking the master whether it is ready: %w", err)
	}
	resp, err := m.http.Do(req)
	if err != nil {
		return 0, "", fmt.Errorf("asking the master whether it is ready: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// Value reads a metric of the master, added up over all series that have the labels, each as `name="value"`.
func (m *Master) Value(ctx context.Context, name string, labels ...string) (float64, error) {
	e, err := m.metrics(ctx)
	return e.value(name, labels...), err
}

// WaitValues waits until reached returns true, which reads metrics as Value does.
func (m *Master) WaitValues(ctx context.Context, reached func(value func(string, ...string) float64) bool) error {
	var failure error
	err := waitWithin(ctx, readyTimeout, m.Process, func() bool {
		e, err := m.metrics(ctx)
		failure = err
		return err != nil || reached(e.value)
	})
	return errors.Join(failure, err)
}

// LiveHeap returns the bytes of the objects that a garbage collection left. It reads metrics until there was one:
// that makes garbage.
func (m *Master) LiveHeap(ctx context.Context) (int64, error) {
	const collections = "go_gc_duration_seconds_count"
	before, err := m.Value(ctx, collections)
	for now := before; err == nil && now == before; {
		now, err = m.Value(ctx, collections)
	}
	if err != nil {
		return 0, err
	}
	e, err := m.metrics(ctx) // once more: the master sets GOGC just after a collection
	// The next collection is due when garbage has made the heap larger by GOGC per cent.
	return int64(e.value("go_memstats_next_gc_bytes") / (1 + e.value("go_gc_gogc_percent")/100)), err
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
