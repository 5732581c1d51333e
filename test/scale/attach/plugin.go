package attach

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/scale/load"
)

// Timing is the duration of an ADD.
type Timing struct {
	Whole  time.Duration            // of the plugin's process, as the runtime sees it
	Served time.Duration            // the part in the agent
	Phases map[string]time.Duration // the parts of Served, by the agent's names of the phases
}

// The agent's histograms. ADDs run one after the other here, so that the difference of two sums is the duration of one
// ADD.
const (
	phaseMetric   = "northbound_cni_add_phase_seconds"
	requestMetric = "northbound_cni_request_seconds"
)

// Add runs the plugin's ADD for the i-th pod.
func (b *Bed) Add(ctx context.Context, i int) (t Timing, err error) {
	before, err := b.sums(ctx)
	if err != nil {
		return t, err
	}
	if t.Whole, err = b.run(ctx, "ADD", i); err != nil {
		return t, err
	}
	after, err := b.sums(ctx)
	if err != nil {
		return t, err
	}
	t.Phases = map[string]time.Duration{}
	for name, sum := range after {
		took := time.Duration((sum - before[name]) * float64(time.Second))
		if name == requestMetric {
			t.Served = took
		} else {
			t.Phases[name] = took
		}
	}
	return t, nil
}

// Del runs the plugin's DEL for the i-th pod.
func (b *Bed) Del(ctx context.Context, i int) (time.Duration, error) { return b.run(ctx, "DEL", i) }

// run executes the plugin on the host: it needs only the agent's socket of the node. Paths that the agent opens are the
// node's.
func (b *Bed) run(ctx context.Context, command string, i int) (time.Duration, error) {
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(netnsName(Namespace, i))))
	cmd := exec.CommandContext(ctx, b.plugin)
	cmd.Env = []string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + id, "CNI_IFNAME=eth0", "CNI_PATH=" + filepath.Dir(b.plugin),
		"CNI_NETNS=/run/netns/" + netnsName(Namespace, i),
		fmt.Sprintf("CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s", Namespace,
			load.PodName(i), id),
	}
	socket := filepath.Join(b.node.Spec.RunDir(), "ovn-kubernetes/cni/ovn-cni-server.sock")
	const conf = `{"cniVersion":"1.0.0","name":"ovn-kubernetes","type":"ovn_cni","socket":%q}`
	cmd.Stdin = strings.NewReader(fmt.Sprintf(conf, socket))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil {
		return took, fmt.Errorf("CNI %s of pod %s: %w: %s", command, load.PodName(i), err, strings.TrimSpace(out.String()))
	}
	return took, nil
}

// sums returns the agent's sums of seconds: of the phases of ADD, and of ADD as a whole.
func (b *Bed) sums(ctx context.Context) (map[string]float64, error) {
	text, err := b.node.Get(ctx, "http://"+node.AgentMetrics+"/metrics")
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for line := range strings.Lines(text) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name := ""
		if rest, ok := strings.CutPrefix(series, phaseMetric+`_sum{phase="`); ok {
			name = strings.TrimSuffix(rest, `"}`)
		} else if strings.HasPrefix(series, requestMetric+"_sum{") && strings.Contains(series, `command="ADD"`) {
			name = requestMetric
		} else {
			continue
		}
		sum, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("reading metric %q: %w", line, err)
		}
		out[name] += sum
	}
	return out, nil
}

// Program is the size of a program's file and the durations of its runs.
type Program struct {
	Size int64           // bytes
	Runs []time.Duration // of each run
}

// Compare runs two programs in turn, n times each: the plugin with VERSION, which needs no agent, and another program.
func Compare(ctx context.Context, plugin, other string, n int) (p, o Program, err error) {
	for path, program := range map[string]*Program{plugin: &p, other: &o} {
		info, err := os.Stat(path)
		if err != nil {
			return p, o, fmt.Errorf("looking at a program: %w", err)
		}
		program.Size = info.Size()
	}
	for range n {
		for path, program := range map[string]*Program{plugin: &p, other: &o} {
			cmd := exec.CommandContext(ctx, path)
			cmd.Env = []string{"CNI_COMMAND=VERSION"}
			cmd.Stdin = strings.NewReader(`{"cniVersion":"1.0.0"}`)
			began := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				return p, o, fmt.Errorf("running %s: %w: %s", path, err, out)
			}
			program.Runs = append(program.Runs, time.Since(began))
		}
	}
	return p, o, nil
}
