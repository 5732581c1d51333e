package policyshape

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/process"
)

const settleLimit = 10 * time.Minute

// meter knows when what has happened, and what it has cost.
type meter struct {
	ovn       *ovn
	config    int           // nb_cfg so far
	computed  *load.Tracker // values of nb_cfg that ovn-northd has written
	installed *load.Tracker // values of nb_cfg whose flows the first chassis has, and interfaces with all their flows
	watches   []*ovsdbwire.Client
}

func newMeter(ctx context.Context, o *ovn) (*meter, error) {
	m := &meter{ovn: o, computed: load.NewTracker("the Southbound database"), installed: load.NewTracker("flows")}
	for _, w := range []struct {
		socket, database, table string
		columns                 []string
		rows                    func(string, map[string]ovsdbwire.RowUpdate)
	}{
		{"sb", southbound, "SB_Global", []string{"nb_cfg"}, central.SeeConfigs(m.computed)},
		{"sb", southbound, "Chassis_Private", []string{"nb_cfg"}, central.SeeConfigs(m.installed)},
		{"conf", openvswitch, "Interface", []string{"name", "external_ids"}, interfaces(m.installed)},
	} {
		c, err := o.Dial(ctx, w.socket)
		if err != nil {
			return m, err
		}
		m.watches = append(m.watches, c)
		if err := c.Monitor(w.database, w.table, w.columns, w.rows); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (m *meter) close() {
	for _, c := range m.watches {
		_ = c.Close() // it has only read
	}
}

// interfaces records each interface that ovn-controller calls installed.
func interfaces(t *load.Tracker) func(string, map[string]ovsdbwire.RowUpdate) {
	var mu sync.Mutex
	names := map[string]string{} // by UUID: a modification has only what has changed
	return func(_ string, rows map[string]ovsdbwire.RowUpdate) {
		mu.Lock()
		defer mu.Unlock()
		for id, u := range rows {
			var row struct {
				Name string
				IDs  json.RawMessage `json:"external_ids"`
			}
			raw := u.Content()
			if raw == nil {
				continue
			}
			if err := json.Unmarshal(raw, &row); err != nil {
				t.Fail(fmt.Errorf("reading an interface: %w", err))
				return
			}
			if row.Name != "" {
				names[id] = row.Name
			}
			if strings.Contains(string(row.IDs), `"ovn-installed"`) {
				t.See(load.Name{Namespace: "interface", Name: names[id]})
			}
		}
	}
}

// spent is CPU time.
type spent struct{ northd, controller, openflow time.Duration }

func (m *meter) spent() (s spent, err error) {
	for p, d := range map[*process.Process]*time.Duration{m.ovn.northd: &s.northd,
		m.ovn.first.Controller: &s.controller, m.ovn.first.OpenFlow: &s.openflow} {
		if p == nil {
			continue
		}
		if *d, err = process.CPU(p.PID()); err != nil {
			return s, fmt.Errorf("%w: %s", err, p.Tail())
		}
	}
	return s, nil
}

func (s spent) sub(o spent) spent {
	return spent{s.northd - o.northd, s.controller - o.controller, s.openflow - o.openflow}
}

// settle waits until ovn-northd and ovn-controller have nothing to do, and returns what they have spent.
func (m *meter) settle(ctx context.Context) (spent, error) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	return process.Settle(ctx, m.spent, func(now, before spent) bool {
		const idle = process.Idle
		d := now.sub(before)
		return d.northd < idle && d.controller < idle && d.openflow < 5*idle
	})
}

// change makes a change, waits for what it leads to, and measures it.
func (m *meter) change(ctx context.Context, s step) (out Sample, err error) {
	recomputed, err := m.recomputes(ctx)
	if err != nil {
		return out, err
	}
	before, err := m.settle(ctx)
	if err != nil {
		return out, err
	}
	if err := m.send(ctx, s, &out); err != nil {
		return out, err
	}
	after, err := m.settle(ctx)
	if err != nil {
		return out, err
	}
	used := after.sub(before)
	out.Northd, out.Controller, out.OpenFlow = used.northd, used.controller, used.openflow
	again, err := m.recomputes(ctx)
	if err != nil {
		return out, err
	}
	out.NorthdAnew = again["northd/lflow"] > recomputed["northd/lflow"]
	out.ControllerAnew = again["controller/lflow_output"] > recomputed["controller/lflow_output"]
	out.Flows, err = m.ovn.first.Flows(ctx)
	return out, err
}

// send sends the operations of a step, and waits until OVN has done its part.
func (m *meter) send(ctx context.Context, s step, out *Sample) error {
	m.config++
	config := load.Name{Name: strconv.Itoa(m.config)}
	began := time.Now()
	if err := m.ovn.nb.Transact(northbound, anything(append(s.ops, bump()))...); err != nil {
		return err
	}
	at, err := m.computed.WaitName(ctx, config)
	if err != nil {
		return err
	}
	out.Computed = at.Sub(began)
	if s.bound != nil {
		if err := m.ovn.sb.Transact(southbound, s.bound); err != nil {
			return err
		}
	}
	if at, err = m.installed.WaitName(ctx, config); err != nil {
		return err
	}
	if s.installs != "" {
		if at, err = m.installed.WaitName(ctx, load.Name{Namespace: "interface", Name: s.installs}); err != nil {
			return err
		}
	}
	out.Installed = at.Sub(began)
	return nil
}

func anything(ops []operation) []any {
	out := make([]any, 0, len(ops))
	for _, o := range ops {
		out = append(out, o)
	}
	return out
}

// recomputes counts how often each node of the incremental engines was computed anew.
func (m *meter) recomputes(ctx context.Context) (map[string]int, error) {
	out := map[string]int{}
	for _, daemon := range []string{"northd", "controller"} {
		counts, err := m.ovn.Recomputes(ctx, daemon)
		if err != nil {
			return nil, err
		}
		for name, n := range counts {
			out[daemon+"/"+name] = n
		}
	}
	return out, nil
}

// longest is the longest time, in milliseconds, that a stopwatch of a daemon has seen.
func (m *meter) longest(ctx context.Context, daemon, stopwatch string) (int, error) {
	text, err := m.ovn.Appctl(ctx, daemon, "stopwatch/show", stopwatch)
	if err != nil {
		return 0, err
	}
	n := regexp.MustCompile(`Maximum:\s+(\d+)`).FindStringSubmatch(text)
	if n == nil {
		return 0, fmt.Errorf("reading stopwatch %s: %s says %q", stopwatch, daemon, text)
	}
	return strconv.Atoi(n[1])
}
