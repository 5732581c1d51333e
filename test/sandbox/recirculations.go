package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/node"
)

// Recirculations watches for packets that pass more tables of a node's userspace datapath than it allows. Their flows
// are gone ten seconds later, so it asks for them at once.
type Recirculations struct {
	mu    sync.Mutex
	found []string
}

const (
	// logLook is how often the logs of the switches are looked at.
	logLook = 100 * time.Millisecond
	// tooDeep is what ovs-vswitchd logs when it drops such a packet.
	tooDeep = "Max recirculation depth exceeded"
)

// WatchRecirculations starts to watch all nodes' switches, until the context ends.
func (c *Cluster) WatchRecirculations(ctx context.Context) *Recirculations {
	r := &Recirculations{}
	for _, n := range c.Nodes {
		go r.watch(ctx, n)
	}
	return r
}

// Err returns an error with the flows of every packet that was dropped.
func (r *Recirculations) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.found) == 0 {
		return nil
	}
	return fmt.Errorf("packets were recirculated too often: %s", strings.Join(r.found, "\n"))
}

func (r *Recirculations) watch(ctx context.Context, n *node.Node) {
	log, read := filepath.Join(n.Spec.LogDir(), node.VSwitchd+".log"), int64(0)
	for tick := time.NewTicker(logLook); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		text := since(log, read)
		read += int64(len(text))
		if !strings.Contains(text, tooDeep) {
			continue
		}
		flows, err := n.Run(ctx, "ovs-appctl", "dpctl/dump-flows")
		found := fmt.Sprintf("node %s at %s, error %v, the longest path then:\n%s", n.Spec.Name,
			time.Now().Format(time.TimeOnly), err, strings.Join(longestPath(flows), "\n"))
		r.mu.Lock()
		r.found = append(r.found, found)
		r.mu.Unlock()
	}
}

// since returns what a file has after so many bytes; "" when it can't be read.
func since(path string, bytes int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	out, err := io.ReadAll(io.NewSectionReader(f, bytes, 1<<20))
	if err != nil {
		return ""
	}
	return string(out)
}

// longestPath lists the flows of the path with most recirculations, from the first. flows has the format of
// `ovs-appctl dpctl/dump-flows`. What comes out of a tunnel has been recirculated once before.
func longestPath(flows string) (longest []string) {
	source, target := regexp.MustCompile(`recirc_id\((\w+)\)`), regexp.MustCompile(`\brecirc\((\w+)\)`)
	from := map[string][]string{} // by where their packets come from
	for line := range strings.Lines(flows) {
		if id := source.FindStringSubmatch(line); id != nil {
			from[id[1]] = append(from[id[1]], strings.TrimSpace(line))
		}
	}
	known := map[string][]string{} // by the first flow; nil while it is being followed
	var path func(flow string) []string
	path = func(flow string) []string {
		if out, ok := known[flow]; ok {
			return out
		}
		known[flow] = nil
		out := []string{flow}
		for _, to := range target.FindAllStringSubmatch(flow, -1) {
			for _, next := range from[to[1]] {
				if rest := path(next); len(rest) >= len(out) {
					out = append([]string{flow}, rest...)
				}
			}
		}
		known[flow] = out
		return out
	}
	most := 0
	for _, flow := range from["0"] {
		out := path(flow)
		n := len(out)
		if strings.Contains(flow, "tunnel(") {
			n++
		}
		if n > most {
			longest, most = out, n
		}
	}
	return longest
}
