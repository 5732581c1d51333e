package agent

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/tlsfiles"
)

// measureInterval is how often the daemons beside the agent are asked for what the metrics say of them.
const measureInterval = 10 * time.Second

// measureDaemons measures the daemons beside the agent until ctx ends.
func (a *Agent) measureDaemons(ctx context.Context) {
	tick := time.NewTicker(measureInterval)
	defer tick.Stop()
	for {
		a.measureController(ctx)
		a.measureDatapath(ctx)
		a.measureDenied(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// measureExpiry measures when the certificates of ovn-controller end.
func (a *Agent) measureExpiry(ctx context.Context) {
	tlsfiles.WatchExpiry(ctx, a.config.SBKeys, func(part string, at float64) {
		a.metrics.Expiry.WithLabelValues("sb", part).Set(at)
	})
}

// measureController asks ovn-controller. One that was never found in its run directory may run elsewhere. One that was
// found may have removed its file when it ended.
func (a *Agent) measureController(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	status, err := ovs.Appctl(asking, a.config.OVNRunDir, "ovn-controller", "connection-status")
	if ctx.Err() != nil || errors.Is(err, fs.ErrNotExist) && !a.found {
		return
	}
	a.found = true
	set := func(g *prometheus.GaugeVec, yes bool) {
		value := 0.0
		if yes {
			value = 1
		}
		g.WithLabelValues().Set(value)
	}
	set(a.metrics.ControllerUp, err == nil)
	set(a.metrics.ControllerConnected, err == nil && status == "connected")
}

// measureDatapath asks ovs-vswitchd. What it said last stays while it does not answer: the node is not ready then.
func (a *Agent) measureDatapath(ctx context.Context) {
	dir, here := a.config.OVSRunDir()
	if !here {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if text, err := ovs.Appctl(ctx, dir, "ovs-vswitchd", "dpctl/show"); err == nil {
		lookups, flows := parseDatapaths(text)
		a.metrics.Lookups.Set(lookups)
		a.metrics.DatapathFlows.WithLabelValues().Set(flows)
	}
	if text, err := ovs.Appctl(ctx, dir, "ovs-vswitchd", "coverage/show"); err == nil {
		a.metrics.Drops.Set(parseDrops(text))
	}
}

// measureDenied counts what ACLs drop.
func (a *Agent) measureDenied(ctx context.Context) {
	now, err := a.flows.DeniedPackets(ctx, names.IntegrationBridge)
	if err != nil {
		return // the node is not ready then
	}
	for direction, packets := range newlyDenied(a.denied, now) {
		a.metrics.ACLDrops.WithLabelValues(direction).Add(packets)
	}
	a.denied = now
}

// newlyDenied adds up, by direction, what flows have counted since they had counted before. A flow that has counted
// less than then was made anew. The first time, when before is nil, that is nothing: a daemon's counters begin at 0.
func newlyDenied(before, now map[ovs.DenyingFlow]uint64) map[string]float64 {
	out := map[string]float64{}
	for flow, packets := range now {
		direction := "egress"
		if flow.ToPods() {
			direction = "ingress"
		}
		switch known := before[flow]; { // 0 of a flow that is new
		case before == nil:
			packets = 0
		case packets >= known:
			packets -= known
		}
		out[direction] += float64(packets)
	}
	return out
}

// lookupsLine and flowsLine are lines of ovs-dpctl(8), show:
//
//	lookups: hit:12 missed:3 lost:0
//	flows: 5
var (
	lookupsLine = regexp.MustCompile(`(?m)^\s+lookups: hit:(\d+) missed:(\d+) lost:(\d+)$`)
	flowsLine   = regexp.MustCompile(`(?m)^\s+flows: (\d+)$`)
)

// parseDatapaths adds up what `dpctl/show` says of all datapaths.
func parseDatapaths(text string) (lookups map[string]float64, flows float64) {
	lookups = map[string]float64{}
	for _, found := range lookupsLine.FindAllStringSubmatch(text, -1) {
		for i, result := range []string{"hit", "missed", "lost"} {
			lookups[result] += number(found[i+1])
		}
	}
	for _, found := range flowsLine.FindAllStringSubmatch(text, -1) {
		flows += number(found[1])
	}
	return lookups, flows
}

// dropLine is a line of ovs-appctl(8), coverage/show, such as
//
//	datapath_drop_meter   0.0/sec   0.000/sec   0.0000/sec   total: 3
var dropLine = regexp.MustCompile(`(?m)^(datapath_drop_\w+|drop_action_\w+) .*total: (\d+)$`)

// wantedDrop counts packets whose flows say so, such as those that a policy drops.
const wantedDrop = "drop_action_of_pipeline"

// parseDrops reads the counters of drops from `coverage/show`, by their names without the common beginning. It lists
// only those that have counted something.
func parseDrops(text string) map[string]float64 {
	drops := map[string]float64{}
	for _, found := range dropLine.FindAllStringSubmatch(text, -1) {
		if found[1] != wantedDrop {
			drops[strings.TrimPrefix(found[1], "datapath_drop_")] = number(found[2])
		}
	}
	return drops
}

// number reads digits.
func number(digits string) float64 {
	n, _ := strconv.ParseFloat(digits, 64) // digits are a number
	return n
}
