package rig

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Counts are the writes of masters up to a moment. The receivers count the first members, the master counts the others.
type Counts struct {
	Logged      int // transactions that changed the Northbound database, from any sender
	PodPatches  int // PATCH requests for pods that the API server answered, from any sender
	NodePatches int

	Transactions int // Northbound transactions, whatever their result
	Refused      int // of these, those that did not succeed
	Operations   int // operations that write, in successful transactions
	Patches      int // annotation patches, whatever their result
	Retried      int // of these, those that did not succeed
}

// Sub returns the writes between o and c.
func (c Counts) Sub(o Counts) Counts {
	return Counts{
		Logged: c.Logged - o.Logged, PodPatches: c.PodPatches - o.PodPatches, NodePatches: c.NodePatches - o.NodePatches,
		Transactions: c.Transactions - o.Transactions, Refused: c.Refused - o.Refused,
		Operations: c.Operations - o.Operations,
		Patches:    c.Patches - o.Patches, Retried: c.Retried - o.Retried,
	}
}

// settleTime is how long the counters may take to agree.
const settleTime = 5 * time.Second

// Counts reads the counters. m may be nil; then the master's own are 0. A counter changes a moment after the event, so
// the counters of sender and receiver are read again until they agree. If they do not within settleTime, they are
// returned as they are.
func (r *Rig) Counts(ctx context.Context, m *Master) (Counts, error) {
	end := time.Now().Add(settleTime)
	for {
		c, err := r.received(ctx)
		if err != nil || m == nil {
			return c, err
		}
		if err := m.sent(ctx, &c); err != nil {
			return c, err
		}
		got := c.Sub(m.before)
		if agree := got.Transactions-got.Refused >= got.Logged && got.Patches == got.PodPatches+got.NodePatches; agree ||
			time.Now().After(end) {
			return c, nil
		}
	}
}

// received reads the counters of the receivers.
func (r *Rig) received(ctx context.Context) (c Counts, err error) {
	if c.Logged, err = r.NB.Log.Records(); err != nil {
		return c, err
	}
	body, err := r.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return c, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	api := exposition(body)
	c.PodPatches = api.sum("apiserver_request_total", `verb="PATCH"`, `resource="pods"`)
	c.NodePatches = api.sum("apiserver_request_total", `verb="PATCH"`, `resource="nodes"`)
	return c, nil
}

// sent adds the counters of the master.
func (m *Master) sent(ctx context.Context, c *Counts) error {
	own, err := m.metrics(ctx)
	if err != nil {
		return err
	}
	c.Transactions = own.sum("northbound_nb_transactions_total")
	c.Refused = c.Transactions - own.sum("northbound_nb_transactions_total", `result="ok"`)
	c.Operations = own.sum("northbound_nb_operations_total")
	c.Patches = own.sum("northbound_k8s_patches_total")
	c.Retried = c.Patches - own.sum("northbound_k8s_patches_total", `result="ok"`)
	return nil
}

// exposition is metrics in the Prometheus text format.
type exposition string

// sum adds up the counters of a name that have all the given labels, each as `name="value"`.
func (e exposition) sum(name string, labels ...string) int { return int(e.value(name, labels...)) }

// value is sum for figures that need not be whole.
func (e exposition) value(name string, labels ...string) float64 {
	total := 0.0
lines:
	for line := range strings.Lines(string(e)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(rest, l) {
				continue lines
			}
		}
		// The value follows the labels. There are no timestamps here.
		if v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64); err == nil {
			total += v
		}
	}
	return total
}
