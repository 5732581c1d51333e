package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/process"
)

const (
	southbound  = "OVN_Southbound"
	northdLimit = 10 * time.Minute
)

// northdSpent is CPU time.
type northdSpent struct{ northd, sb, nb, master time.Duration }

func (s northdSpent) sub(o northdSpent) northdSpent {
	return northdSpent{s.northd - o.northd, s.sb - o.sb, s.nb - o.nb, s.master - o.master}
}

func (n *northd) spent() (s northdSpent, err error) {
	processes := map[*process.Process]*time.Duration{n.daemon: &s.northd, n.sbServer: &s.sb, n.nbServer: &s.nb}
	if n.master != nil {
		processes[n.master.Process] = &s.master
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

// settle waits until nobody has anything to do, and returns what was spent.
func (n *northd) settle(ctx context.Context) (northdSpent, error) {
	ctx, cancel := context.WithTimeout(ctx, northdLimit)
	defer cancel()
	return process.Settle(ctx, n.spent, func(now, before northdSpent) bool {
		const idle = process.Idle
		d := now.sub(before)
		return d.northd < idle && d.sb < idle && d.nb < idle && d.master < 3*idle
	})
}

// watch records what is in the Southbound database: numbers of nb_cfg, logical ports, and load balancers with their
// numbers of backends.
func (n *northd) watch(ctx context.Context) error {
	for _, w := range []struct {
		table   string
		columns []string
		see     func(id string, row map[string]json.RawMessage)
	}{
		{"SB_Global", []string{"nb_cfg"}, func(_ string, row map[string]json.RawMessage) {
			n.seen.See(load.Name{Namespace: "nb_cfg", Name: string(row["nb_cfg"])})
		}},
		{"Port_Binding", []string{"logical_port"}, func(_ string, row map[string]json.RawMessage) {
			n.seen.See(load.Name{Namespace: "port", Name: strings.Trim(string(row["logical_port"]), `"`)})
		}},
		{"Load_Balancer", []string{"name", "vips"}, n.balancers()},
	} {
		c, err := n.system.Dial(ctx, "sb")
		if err != nil {
			return err
		}
		n.watches = append(n.watches, c)
		err = c.Monitor(southbound, w.table, w.columns, func(_ string, rows map[string]ovsdbwire.RowUpdate) {
			for id, u := range rows {
				var row map[string]json.RawMessage
				if raw := u.Content(); raw == nil || json.Unmarshal(raw, &row) != nil {
					continue // deleted
				}
				w.see(id, row)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// balancers records load balancers by their names, and again with the number of IPv4 backends of one VIP.
func (n *northd) balancers() func(string, map[string]json.RawMessage) {
	var mu sync.Mutex
	names := map[string]string{} // by UUID: a change has only what has changed
	return func(id string, row map[string]json.RawMessage) {
		mu.Lock()
		defer mu.Unlock()
		if name := strings.Trim(string(row["name"]), `"`); name != "" {
			names[id] = name
			n.seen.See(load.Name{Namespace: "balancer", Name: name})
		}
		// ["map",[["10.96.0.1:80","10.128.0.3:8080,10.128.0.4:8080"], ...]], backends of IPv4 begin with 10.
		n.seen.See(load.Name{Namespace: "balancer",
			Name: backendsOf(names[id], strings.Count(string(row["vips"]), ":8080"))})
	}
}

func backendsOf(balancer string, n int) string { return fmt.Sprintf("%s with %d", balancer, n) }

// sync gives nb_cfg a value that it never had, and waits until ovn-northd has copied it.
func (n *northd) sync(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, northdLimit)
	defer cancel()
	seen, err := n.raise()
	if err != nil {
		return time.Time{}, err
	}
	return n.seen.WaitName(ctx, seen)
}

// raise gives nb_cfg a value that it never had, which ovn-northd copies.
func (n *northd) raise() (load.Name, error) {
	n.config++
	return load.Name{Namespace: "nb_cfg", Name: strconv.Itoa(n.value())}, n.nb.Transact("OVN_Northbound",
		map[string]any{"op": "update", "table": "NB_Global", "where": []any{}, "row": map[string]any{"nb_cfg": n.value()}})
}

// value is the last value of nb_cfg.
func (n *northd) value() int { return 1000 + n.config }

// follow has every chassis write that it has followed, as each ovn-controller does in a transaction of its own.
func (n *northd) follow() error {
	for i := range n.nodes {
		err := n.sb.Transact(southbound, map[string]any{"op": "update", "table": "Chassis_Private",
			"where": []any{[]any{"name", "==", load.ChassisID(i)}},
			"row":   map[string]any{"nb_cfg": n.value(), "nb_cfg_timestamp": time.Now().UnixMilli()}})
		if err != nil {
			return fmt.Errorf("following with the chassis of node %d: %w", i, err)
		}
	}
	return nil
}

// chassis makes a chassis for each node, as its ovn-controller does when it starts.
func (n *northd) chassis(context.Context) error {
	for i := range n.nodes {
		id := load.ChassisID(i)
		ops := central.FakeChassis(id, load.NodeName(i), fmt.Sprintf("198.18.%d.%d", i/250, 1+i%250))
		if err := n.sb.Transact(southbound, ops...); err != nil {
			return fmt.Errorf("making the chassis of node %d: %w", i, err)
		}
	}
	return nil
}

// bind binds to each chassis the ports that are on it.
func (n *northd) bind(ctx context.Context) error {
	for i := range n.nodes {
		id := load.ChassisID(i)
		ops := []any{central.Bind("k8s-"+load.NodeName(i), id)}
		for p := i * northdPods; p < (i+1)*northdPods; p++ {
			ops = append(ops, central.Bind(portOf(p, n.out.Pods), id))
		}
		if err := n.sb.Transact(southbound, ops...); err != nil {
			return fmt.Errorf("binding the ports of node %d: %w", i, err)
		}
	}
	if _, err := n.sync(ctx); err != nil {
		return err
	}
	_, err := n.settle(ctx)
	return err
}

// portOf is the logical port of the i-th pod, of a cluster that had so many before the changes.
func portOf(i, pods int) string { return namespaceOf(i%pods) + "_" + load.PodName(i) }

// memory measures what everybody has, and how much there is.
func (n *northd) memory(ctx context.Context) (err error) {
	for p, to := range map[*process.Process]*int64{n.daemon: &n.out.NorthdRSS, n.sbServer: &n.out.SBRSS,
		n.nbServer: &n.out.NBRSS} {
		u, err := p.Usage()
		if err != nil {
			return err
		}
		*to = u.RSS
	}
	n.out.LogicalFlows, err = n.system.Count(ctx, "Logical_Flow")
	return err
}

// northdChange is something that comes, and where it is then seen.
type northdChange struct {
	name string
	do   func(ctx context.Context, n *northd) (seen load.Name, err error)
	then func(n *northd) error // what a chassis does when it sees it, nil for nothing
}

// northdChanges lists what is measured, in its order.
func northdChanges() []northdChange {
	served := func(n *northd) string {
		return "Service_" + phaseScale + "/" + load.ServiceName(n.nextServed-1) + "_TCP"
	}
	return []northdChange{
		{"a pod comes", func(ctx context.Context, n *northd) (load.Name, error) {
			n.nextPod++
			i := n.nextPod - 1
			return load.Name{Namespace: "port", Name: portOf(i, n.out.Pods)}, n.podOn(ctx, i, n.out.Pods,
				i%n.nodes)
		}, func(n *northd) error {
			i := n.nextPod - 1
			return n.sb.Transact(southbound, central.Bind(portOf(i, n.out.Pods), load.ChassisID(i%n.nodes)))
		}},
		{"a service comes, without endpoints", func(ctx context.Context, n *northd) (load.Name, error) {
			n.nextServed++
			return load.Name{Namespace: "balancer", Name: served(n)}, load.CreateDualService(ctx, n.rig.Kube, phaseScale,
				n.nextServed-1)
		}, nil},
		{"its endpoints come, 10 of IPv4", func(ctx context.Context, n *northd) (load.Name, error) {
			return load.Name{Namespace: "balancer", Name: backendsOf(served(n), load.Backends)}, load.CreateBackends(ctx,
				n.rig.Kube, phaseScale, n.nextServed-1, true)
		}, nil},
		{"one endpoint goes", func(ctx context.Context, n *northd) (load.Name, error) {
			_, _, err := load.SetBackends(ctx, n.rig.Kube, phaseScale, n.nextServed-1, load.Backends-1)
			return load.Name{Namespace: "balancer", Name: backendsOf(served(n), load.Backends-1)}, err
		}, nil},
		{"a node comes", func(ctx context.Context, n *northd) (load.Name, error) {
			n.nextNode++
			i := n.nextNode - 1
			return load.Name{Namespace: "port", Name: "stor-" + load.NodeName(i)}, load.Node(ctx, n.rig.Kube, i)
		}, nil},
		{"OVN's latency is measured", func(_ context.Context, n *northd) (load.Name, error) {
			return n.raise()
		}, (*northd).follow},
	}
}

// changes makes each change some times.
func (n *northd) changes(ctx context.Context) error {
	all := map[string][]northdSample{}
	for range n.rounds {
		for _, c := range northdChanges() {
			s, err := n.change(ctx, c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			all[c.name] = append(all[c.name], s)
		}
	}
	n.out.Changes = map[string]northdSample{}
	for name, samples := range all {
		n.out.Changes[name] = medianOf(samples)
	}
	return nil
}

// change makes one change, waits for what it leads to, and measures it.
func (n *northd) change(ctx context.Context, c northdChange) (out northdSample, err error) {
	ctx, cancel := context.WithTimeout(ctx, northdLimit)
	defer cancel()
	recomputed, err := n.system.Recomputes(ctx, "northd")
	if err != nil {
		return out, err
	}
	before, err := n.settle(ctx)
	if err != nil {
		return out, err
	}
	records, err := n.rig.NB.Log.Records()
	if err != nil {
		return out, err
	}
	sent := time.Now()
	seen, err := c.do(ctx, n)
	if err != nil {
		return out, err
	}
	for now := records; now == records; {
		if err := pause(ctx, logPoll); err != nil {
			return out, fmt.Errorf("waiting for a transaction: %w", err)
		}
		if now, err = n.rig.NB.Log.Records(); err != nil {
			return out, err
		}
	}
	written := time.Now()
	at, err := n.seen.WaitName(ctx, seen)
	if err != nil {
		return out, err
	}
	out.Northbound, out.Southbound = written.Sub(sent), max(0, at.Sub(written))
	if c.then != nil {
		if err := c.then(n); err != nil {
			return out, err
		}
	}
	after, err := n.settle(ctx)
	if err != nil {
		return out, err
	}
	used := after.sub(before)
	out.NorthdCPU, out.SBCPU = used.northd, used.sb
	again, err := n.system.Recomputes(ctx, "northd")
	out.Anew = again["lflow"] > recomputed["lflow"]
	return out, err
}

// medianOf is the median of each figure. Logical flows were computed anew if they were mostly.
func medianOf(all []northdSample) northdSample {
	middle := func(figure func(northdSample) time.Duration) time.Duration {
		return process.Median(all, figure)
	}
	return northdSample{
		Northbound: middle(func(s northdSample) time.Duration { return s.Northbound }),
		Southbound: middle(func(s northdSample) time.Duration { return s.Southbound }),
		NorthdCPU:  middle(func(s northdSample) time.Duration { return s.NorthdCPU }),
		SBCPU:      middle(func(s northdSample) time.Duration { return s.SBCPU }),
		Anew: middle(func(s northdSample) time.Duration {
			if s.Anew {
				return 1
			}
			return 0
		}) == 1,
	}
}
