package monitoring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// discovery is what Debian's Prometheus is built without.
const discovery = `  kubernetes_sd_configs:
  - role: pod
    namespaces: {names: [ovn-kubernetes]}
`

// Prometheus takes the configuration that the page shows, but for the discovery of pods.
func TestPageConfiguration(t *testing.T) {
	const there = "/etc/prometheus/northbound/"
	dir := t.TempDir() + "/"
	var configuration strings.Builder
	parts := strings.Split(read(t, root+"/docs/operate/monitoring.md"), "```yaml\n")
	for _, part := range parts[1:] {
		block, _, _ := strings.Cut(part, "```")
		configuration.WriteString(strings.ReplaceAll(block, there, dir))
	}
	shown := configuration.String()
	if !strings.Contains(shown, discovery) {
		t.Errorf("the page does not have the lines\n%s", discovery)
	}
	if len(parts) != 3 {
		t.Fatalf("the page has %d blocks of YAML, want 2: the scrape job, and the rules", len(parts)-1)
	}
	for name, text := range map[string]string{
		"prometheus.yaml": strings.Replace(shown, discovery, "", 1), "alerts.yaml": read(t, alertsFile), "token": "secret",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool(t, "check", "config", dir+"prometheus.yaml")
}
