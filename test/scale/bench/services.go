package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/scale/load"
)

// phaseServices measures services with load.Backends endpoints each.
const phaseServices = "services"

// servicesWaiting is the namespace of the services that exist before the master starts. servicesBurst is the namespace
// of those that are created while it runs.
const (
	servicesWaiting = "services-waiting"
	servicesBurst   = "services-burst"
)

// services measures how fast services get into Northbound: those that wait for a master, and those that are created
// while it runs. It also measures how long an endpoint's change takes.
func (b *bench) services(ctx context.Context) (err error) {
	seen, err := load.ObserveServices(b.rig.NB.Socket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seen.Close()) }()
	balancers, err := b.rawBalancers(ctx)
	if err != nil {
		return err
	}
	b.report.add(phaseServices, "raw: Northbound writes, one connection", "%.0f services/s", balancers).
		beside("%d load balancers, %d a transaction, an insert and a mutate each", b.Services, perTransaction)
	creations, err := b.waitingServices(ctx)
	if err != nil {
		return err
	}
	if err := b.servicesBacklog(ctx, seen, balancers); err != nil {
		return err
	}
	if err := b.servicesBurst(ctx, seen, creations); err != nil {
		return err
	}
	return b.endpointChanges(ctx, seen)
}

// rawBalancers writes load balancers like the master's, to a database of its own.
func (b *bench) rawBalancers(ctx context.Context) (perSec float64, err error) {
	const group = 5 // of row UUIDs
	return b.rawWrites(ctx, "raw-services", b.Services, []any{object{"op": "insert", "table": "Load_Balancer_Group",
		"uuid": rowUUID(group, 0), "row": object{"name": "clusterLBGroup"}}},
		func(i int) []any {
			var backends []string
			for j := range load.Backends {
				backends = append(backends, fmt.Sprintf("10.%d.%d.%d:8080", 128+j%4, i&255, 3+j))
			}
			name := servicesWaiting + "/" + load.ServiceName(i)
			row := object{
				"name": "Service_" + name + "_TCP", "protocol": "tcp", "vips": ovsMap(fmt.Sprintf("10.96.%d.%d:80", i>>8, i&255),
					strings.Join(backends, ",")),
				"options":          ovsMap("hairpin_snat_ip", "169.254.169.5 fd69::5", "reject", "true"),
				"selection_fields": []any{"set", []string{"ip_src", "ip_dst", "tp_src", "tp_dst"}},
				"external_ids": ovsMap("k8s.ovn.org/owner-type", "Service", "k8s.ovn.org/owner-name", name, "k8s.ovn.org/role",
					"TCP"),
			}
			return []any{
				object{"op": "insert", "table": "Load_Balancer", "uuid": rowUUID(group+1, i), "row": row},
				object{"op": "mutate", "table": "Load_Balancer_Group",
					"where":     []any{[]any{"_uuid", "==", []string{"uuid", rowUUID(group, 0)}}},
					"mutations": []any{[]any{"load_balancer", "insert", []any{"set", []any{[]string{"uuid", rowUUID(group+1, i)}}}}}},
			}
		})
}

// waitingServices creates the services for the backlog while no master runs, and returns the API server's rate.
func (b *bench) waitingServices(ctx context.Context) (perSec float64, err error) {
	if b.master != nil {
		if err := b.master.Stop(); err != nil {
			return 0, err
		}
		b.master = nil
	}
	if err := load.Namespace(ctx, b.rig.Kube, servicesWaiting); err != nil {
		return 0, err
	}
	before, err := spent(b.rig, nil)
	if err != nil {
		return 0, err
	}
	began, err := load.CreateServices(ctx, b.rig.Kube, servicesWaiting, 0, b.Services)
	if err != nil {
		return 0, err
	}
	perSec = perSecond(b.Services, time.Since(began))
	after, err := spent(b.rig, nil)
	if err != nil {
		return 0, err
	}
	b.report.disturbed("raw creations of services", after.sub(before))
	b.report.add(phaseServices, "raw: creations, with a slice of 10 endpoints", "%.0f services/s", perSec).
		beside("%d services, %d at a time, no master about", b.Services, load.Workers)
	return perSec, nil
}

// servicesBacklog starts the master when the services are waiting.
func (b *bench) servicesBacklog(ctx context.Context, seen *load.ServiceObserver, limit float64) error {
	before, err := b.mark(ctx)
	if err != nil {
		return err
	}
	if b.master, err = b.rig.StartMaster(ctx); err != nil {
		return err
	}
	done, err := seen.Whole.Wait(ctx, servicesWaiting, b.Services)
	if err != nil {
		return err
	}
	took := done.Sub(b.master.Started)
	rate := perSecond(b.Services, took)
	b.report.add(phaseServices, "those that wait, from the master's start until all are in Northbound",
		"%.0f services/s (%s)", rate, seconds(took)).
		beside("raw writes %.0f/s", limit).ratio(rate, limit)
	// Writes to Northbound are batched: those of the backlog in a few transactions, those of the burst as they arrive.
	if err := b.serviceCosts(ctx, "waiting", before, b.Services/10+10); err != nil {
		return err
	}
	_, err = b.master.WaitReady(ctx)
	return err
}

// servicesBurst creates services at once while the master runs.
func (b *bench) servicesBurst(ctx context.Context, seen *load.ServiceObserver, limit float64) error {
	if err := load.Namespace(ctx, b.rig.Kube, servicesBurst); err != nil {
		return err
	}
	before, err := b.mark(ctx)
	if err != nil {
		return err
	}
	began, err := load.CreateServices(ctx, b.rig.Kube, servicesBurst, b.Services, 2*b.Services)
	if err != nil {
		return err
	}
	done, err := seen.Whole.Wait(ctx, servicesBurst, b.Services)
	if err != nil {
		return err
	}
	rate := perSecond(b.Services, done.Sub(began))
	b.report.add(phaseServices, "burst: until all are in Northbound", "%.0f services/s (%s)", rate,
		seconds(done.Sub(began))).
		beside("raw creations %.0f/s", limit).ratio(rate, limit)
	return b.serviceCosts(ctx, "burst", before, 2*b.Services)
}

// serviceCosts reports and checks the writes for b.Services services since before. Each service takes an insert, its
// place in the group, and, if its endpoints came later, an update, in at most the given number of transactions.
func (b *bench) serviceCosts(ctx context.Context, what string, before moment, transactions int) error {
	now, err := b.mark(ctx)
	if err != nil {
		return err
	}
	wrote, took := now.counts.Sub(before.counts), now.cost.sub(before.cost)
	b.report.disturbed("services, "+what, took)
	n := float64(b.Services)
	b.report.add(phaseServices, what+": Northbound transactions, operations", "%.3f, %.2f a service",
		float64(wrote.Transactions)/n, float64(wrote.Operations)/n).
		beside("%d sent, %d refused; CPU time of the master %s a service", wrote.Transactions, wrote.Refused,
			perPod(took.master, b.Services))
	most := 3*b.Services + 2*7*b.Nodes // a start also finds nodes
	if wrote.Refused != 0 || wrote.Operations > most || wrote.Transactions > transactions {
		b.report.violate("services, %s: %d transactions, %d refused, %d operations, want at most %d, none and %d", what,
			wrote.Transactions, wrote.Refused, wrote.Operations, transactions, most)
	}
	return nil
}

// endpointChanges removes one endpoint from a service at a time, at a steady rate.
func (b *bench) endpointChanges(ctx context.Context, seen *load.ServiceObserver) error {
	changes := min(steadyChanges, b.Services)
	before, err := b.mark(ctx)
	if err != nil {
		return err
	}
	samples, err := steady(ctx, changes, steadyInterval, func(i int) (sent, answered time.Time, err error) {
		return load.SetBackends(ctx, b.rig.Kube, servicesBurst, b.Services+i, load.Backends-1)
	})
	if err != nil {
		return err
	}
	if _, err := seen.Short.Wait(ctx, servicesBurst, changes); err != nil {
		return err
	}
	now, err := b.mark(ctx)
	if err != nil {
		return err
	}
	request, written, err := ways(samples, seen.Short, func(i int) load.Name {
		return load.Name{Namespace: servicesBurst, Name: load.ServiceName(b.Services + i)}
	})
	if err != nil {
		return err
	}
	b.report.add(phaseServices, "an endpoint goes: request to Northbound, p50 p95 p99", "%s", percentiles(written)).
		beside("the request itself %s; %d changes, %d services", percentiles(request), changes, 2*b.Services)
	wrote, took := now.counts.Sub(before.counts), now.cost.sub(before.cost)
	b.report.disturbed("an endpoint goes", took)
	if wrote.Operations != changes || wrote.Refused != 0 {
		b.report.violate("services: %d operations for %d changes of an endpoint, %d refused, want one each", wrote.Operations,
			changes, wrote.Refused)
	}
	return nil
}

// ways returns how long requests took, and the time from each request until a tracker saw its effect. name returns the
// tracker's name of the i-th request.
func ways(samples []sample, t *load.Tracker, name func(i int) load.Name) (request, whole []time.Duration, err error) {
	for i, s := range samples {
		at, ok := t.At(name(i))
		if !ok {
			return nil, nil, fmt.Errorf("what came of request %d, %s, was not seen", i, name(i).Name)
		}
		request, whole = append(request, s.answered.Sub(s.sent)), append(whole, at.Sub(s.sent))
	}
	return request, whole, nil
}
