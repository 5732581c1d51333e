package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/monitoring/dashboard"
	"github.com/northbound-net/northbound/test/sandbox"
)

const (
	// address is where Prometheus listens, in the network of the control machine.
	address = "127.0.0.1:9090"
	rules   = "../../../dist/prometheus/alerts.yaml"
	limit   = 120 * time.Second // for an alert to fire or to end
)

// prometheus is a Prometheus server that reads the metrics of a cluster as an operator's would.
type prometheus struct {
	*sandbox.Cluster
	targets int
	begun   time.Time
	marks   []dashboard.Mark // when faults began
}

// start starts it with the chart's token and the alerts. These wait less long than an operator's: only the times in the
// rules are others.
func start(t *testing.T, c *sandbox.Cluster, token string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	write("alerts.yaml", hasten(string(text)))
	write("token", token)
	targets := Targets(c)
	write("prometheus.yaml", fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [alerts.yaml]
scrape_configs:
- job_name: northbound
  scheme: https
  tls_config: {insecure_skip_verify: true}
  authorization: {credentials_file: token}
  static_configs: [{targets: ["%s"]}]
`, strings.Join(targets, `", "`)))
	run(t, c.Control.NetworkCommand(context.Background(), "prometheus", "--web.listen-address="+address,
		"--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data")))
	return &prometheus{Cluster: c, targets: len(targets), begun: time.Now()}
}

// run runs a server until the test ends.
func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Errorf("ending %s: %v", cmd.Path, err)
		}
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("the log of %s:\n%s", cmd.Path, log.String())
		}
	})
}

// Targets lists where the metrics of a cluster of the chart are.
func Targets(c *sandbox.Cluster) (out []string) {
	for i, n := range c.Nodes {
		host := n.Config.Addrs[0].Addr().String()
		out = append(out, host+":9420")
		if i == 0 { // the control plane
			out = append(out, host+":9419", host+":9421")
		}
	}
	return out
}

// hasten makes rules fire soon.
func hasten(rules string) string {
	rules = regexp.MustCompile(`(?m)^(\s+for:) \S+$`).ReplaceAllString(rules, "$1 1s")
	return regexp.MustCompile(`\[(5|10)m\]`).ReplaceAllString(rules, "[15s]")
}

// ask asks Prometheus.
func (p *prometheus) ask(ctx context.Context, path string, data any) error {
	text, err := p.Control.Get(ctx, "http://"+address+path)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), &struct {
		Data any `json:"data"`
	}{data})
}

// value is what a query of one number finds, or 0.
func (p *prometheus) value(ctx context.Context, query string) (out float64, err error) {
	var data struct {
		Result []struct {
			Value [2]any `json:"value"`
		} `json:"result"`
	}
	if err := p.ask(ctx, "/api/v1/query?query="+url.QueryEscape(query), &data); err != nil || len(data.Result) == 0 {
		return 0, err
	}
	_, err = fmt.Sscan(fmt.Sprint(data.Result[0].Value[1]), &out)
	return out, err
}

// firing lists the alerts that fire now, each once.
func (p *prometheus) firing(ctx context.Context) (out []string, err error) {
	var data struct {
		Alerts []struct {
			State  string            `json:"state"`
			Labels map[string]string `json:"labels"`
		} `json:"alerts"`
	}
	if err := p.ask(ctx, "/api/v1/alerts", &data); err != nil {
		return nil, err
	}
	for _, a := range data.Alerts {
		if a.State == "firing" {
			out = append(out, a.Labels["alertname"])
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// quiet waits until all targets are read and no alert fires but these.
func (p *prometheus) quiet(t *testing.T, when string, but ...string) {
	t.Helper()
	machines.Within(t, limit, "no alert "+when, func(ctx context.Context) string {
		if up, err := p.value(ctx, "sum(up)"); err != nil || up != float64(p.targets) {
			return fmt.Sprintf("targets that answer: %v, %v, want %d", up, err, p.targets)
		}
		firing, err := p.firing(ctx)
		if err != nil {
			return err.Error()
		}
		firing = slices.DeleteFunc(firing, func(a string) bool { return slices.Contains(but, a) })
		if len(firing) > 0 {
			return fmt.Sprintf("alerts: %v", firing)
		}
		return ""
	})
}

// fires waits until alerts have fired, each at some time from now on.
func (p *prometheus) fires(t *testing.T, when string, want ...string) {
	t.Helper()
	p.firesWithin(t, limit, when, want...)
}

// firesWithin is fires with another limit.
func (p *prometheus) firesWithin(t *testing.T, limit time.Duration, when string, want ...string) {
	t.Helper()
	begun, seen := time.Now(), map[string]bool{}
	machines.Within(t, limit, "alerts "+when, func(ctx context.Context) string {
		firing, err := p.firing(ctx)
		if err != nil {
			return err.Error()
		}
		for _, a := range firing {
			if !seen[a] {
				seen[a] = true
				t.Logf("%s: %s fires after %s", when, a, time.Since(begun).Round(time.Second))
			}
		}
		missing := slices.DeleteFunc(slices.Clone(want), func(a string) bool { return seen[a] })
		if len(missing) > 0 {
			return fmt.Sprintf("not fired yet: %v", missing)
		}
		return ""
	})
}
