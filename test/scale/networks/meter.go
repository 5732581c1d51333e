package networks

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/process"
)

// watch records values of nb_cfg: those that ovn-northd has written, and those whose flows the chassis has.
func (r *run) watch(ctx context.Context) error {
	for table, seen := range map[string]*load.Tracker{"SB_Global": r.computed, "Chassis_Private": r.installed} {
		c, err := r.system.Dial(ctx, "sb")
		if err != nil {
			return err
		}
		r.watches = append(r.watches, c)
		if err := c.Monitor(southbound, table, []string{"nb_cfg"}, central.SeeConfigs(seen)); err != nil {
			return err
		}
	}
	return nil
}

// sync gives nb_cfg a value that it never had, and waits until a tracker has seen it.
func (r *run) sync(ctx context.Context, t *load.Tracker) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.config++
	err := r.nb.Transact(northbound, map[string]any{"op": "update", "table": "NB_Global", "where": []any{},
		"row": map[string]any{"nb_cfg": r.config}})
	if err != nil {
		return time.Time{}, err
	}
	return t.WaitName(ctx, load.Name{Name: strconv.Itoa(r.config)})
}

// spent is CPU time.
type spent struct{ master, northd, controller, openflow time.Duration }

func (r *run) spent() (s spent, err error) {
	processes := map[*process.Process]*time.Duration{r.northd: &s.northd, r.chassis.Controller: &s.controller,
		r.chassis.OpenFlow: &s.openflow}
	if r.master != nil {
		processes[r.master.Process] = &s.master
	}
	for p, d := range processes {
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
	return spent{s.master - o.master, s.northd - o.northd, s.controller - o.controller, s.openflow - o.openflow}
}

// settle waits until nobody has anything to do, and returns what was spent.
func (r *run) settle(ctx context.Context) (spent, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return process.Settle(ctx, r.spent, func(now, before spent) bool {
		const idle = process.Idle
		d := now.sub(before)
		return d.master < 3*idle && d.northd < idle && d.controller < idle && d.openflow < 5*idle
	})
}

// counts is how much there is.
type counts struct{ rows, logicalFlows, datapaths, flows int }

func (c counts) sub(o counts) counts {
	return counts{c.rows - o.rows, c.logicalFlows - o.logicalFlows, c.datapaths - o.datapaths, c.flows - o.flows}
}

// each is the counts for each of n networks.
func (c counts) each(n int) Each {
	of := func(count int) float64 { return float64(count) / float64(n) }
	return Each{of(c.rows), of(c.logicalFlows), of(c.datapaths), of(c.flows)}
}

// count counts when nobody has anything to do any more.
func (r *run) count(ctx context.Context) (c counts, err error) {
	if _, err := r.settle(ctx); err != nil {
		return c, err
	}
	if c.rows, err = r.rows(ctx); err != nil {
		return c, err
	}
	if c.logicalFlows, err = r.system.Count(ctx, "Logical_Flow"); err != nil {
		return c, err
	}
	if c.datapaths, err = r.system.Count(ctx, "Datapath_Binding"); err != nil {
		return c, err
	}
	c.flows, err = r.chassis.Flows(ctx)
	return c, err
}

// rows counts the rows of all tables of the Northbound database.
func (r *run) rows(ctx context.Context) (total int, err error) {
	remote := "unix:" + r.system.Inside("nb.sock")
	tables, err := r.system.Run(ctx, "ovsdb-client", "--no-headings", "list-tables", remote, northbound)
	if err != nil {
		return 0, err
	}
	request := []any{northbound}
	for _, table := range strings.Fields(tables) {
		request = append(request, map[string]any{"op": "select", "table": table, "where": []any{},
			"columns": []string{"_uuid"}})
	}
	text, err := json.Marshal(request)
	if err != nil {
		return 0, fmt.Errorf("writing a request: %w", err)
	}
	answer, err := r.system.Run(ctx, "ovsdb-client", "transact", remote, string(text))
	if err != nil {
		return 0, err
	}
	var results []struct {
		Rows []json.RawMessage
	}
	if err := json.Unmarshal([]byte(answer), &results); err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	for _, t := range results {
		total += len(t.Rows)
	}
	return total, nil
}

// memory is the RSS of every process, in bytes.
func (r *run) memory() (m Memory, err error) {
	for p, rss := range map[*process.Process]*int64{r.master.Process: &m.Master, r.northd: &m.Northd,
		r.sbServer: &m.Southbound, r.chassis.Controller: &m.Controller, r.chassis.OpenFlow: &m.OpenFlow} {
		u, err := p.Usage()
		if err != nil {
			return m, err
		}
		*rss = u.RSS
	}
	return m, nil
}
