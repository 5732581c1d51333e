package monitoring

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "copy the alerts into the chart")

const (
	root       = "../.."
	alertsFile = root + "/dist/prometheus/alerts.yaml"
	alertsPage = root + "/docs/operate/alerts.md"
	testsFile  = "testdata/alerts.test.yaml"
	// pageAddress is where people read the page.
	pageAddress = "https://github.com/northbound-net/northbound/blob/master/docs/operate/alerts.md#"
)

// alert is a rule that alerts.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// load reads a file in YAML or JSON.
func load(t *testing.T, file string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(read(t, file)), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alerts lists all rules.
func alerts(t *testing.T) (out []alert) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	load(t, alertsFile, &file)
	for _, g := range file.Groups {
		out = append(out, g.Rules...)
	}
	if len(out) < 12 {
		t.Fatalf("%s has %d alerts, want 12 at least", alertsFile, len(out))
	}
	return out
}

// Every alert says how bad it is, what is wrong and where, and which section of the page helps. Every section of the
// page is about an alert.
func TestAlertsHavePages(t *testing.T) {
	page := read(t, alertsPage)
	sections := map[string]string{}
	for _, part := range strings.Split(page, "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		sections[heading] = text
	}
	for _, a := range alerts(t) {
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q: want critical or warning", a.Alert, s)
		}
		if a.Annotations["summary"] == "" {
			t.Errorf("%s: there is no summary", a.Alert)
		}
		if d := a.Annotations["description"]; !strings.Contains(d, "{{ $") {
			t.Errorf("%s: the description %q has neither a value nor a label", a.Alert, d)
		}
		if have, want := a.Annotations["runbook_url"], pageAddress+strings.ToLower(a.Alert); have != want {
			t.Errorf("%s: runbook_url %q, want %q", a.Alert, have, want)
		}
		text, ok := sections[a.Alert]
		if !ok {
			t.Errorf("%s has no section %q", alertsPage, a.Alert)
		}
		for _, part := range []string{"**What users notice.**", "**Likely causes**", "```", "\n**Over** "} {
			if ok && !strings.Contains(text, part) {
				t.Errorf("%s: section %s has no %q", alertsPage, a.Alert, part)
			}
		}
		delete(sections, a.Alert)
	}
	for _, other := range []string{"Which were fired by a fault", "Limits"} {
		if _, ok := sections[other]; !ok {
			t.Errorf("%s has no section %q", alertsPage, other)
		}
		delete(sections, other)
	}
	if len(sections) > 0 {
		t.Errorf("%s has sections that no alert needs: %v", alertsPage, slices.Sorted(maps.Keys(sections)))
	}
}

// The page says which alerts a test fires with a real fault, and which not.
func TestPageSaysWhatWasFired(t *testing.T) {
	_, section, _ := strings.Cut(read(t, alertsPage), "\n## Which were fired by a fault\n")
	section, _, _ = strings.Cut(section, "\n## ")
	fired, others, ok := strings.Cut(section, "\nOnly `promtool` fired ")
	if !ok {
		t.Fatalf("%s does not say which alerts no fault has fired", alertsPage)
	}
	files, err := filepath.Glob(root + "/test/e2e/alerts/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source string
	for _, f := range files {
		source += read(t, f)
	}
	for _, a := range alerts(t) {
		tried := strings.Contains(source, `"`+a.Alert+`"`)
		if strings.Contains(fired, "`"+a.Alert+"`") != tried || strings.Contains(others, "`"+a.Alert+"`") == tried {
			t.Errorf("%s: %s is wrong about it: a fault fires it in a test: %v", a.Alert, alertsPage, tried)
		}
	}
}

// reference lists the metrics in the generated page, with their labels. Each has the labels that Prometheus adds.
func reference(t *testing.T) map[string][]string {
	t.Helper()
	item := regexp.MustCompile("(?m)^- `(northbound_[a-z0-9_]+)(?:{([a-z,]+)})?` \\(([a-z]+)\\)")
	out := map[string][]string{"up": nil}
	for _, found := range item.FindAllStringSubmatch(read(t, root+"/docs/reference/metrics.md"), -1) {
		name, labels := found[1], strings.Split(found[2], ",")
		if found[3] == "histogram" {
			out[name+"_sum"], out[name+"_count"] = labels, labels
			name, labels = name+"_bucket", append(labels, "le")
		}
		out[name] = labels
	}
	if len(out) < 40 {
		t.Fatalf("the reference page has %d metrics, want 40 at least", len(out))
	}
	return out
}

// selector is a metric in an expression, and the labels that it is selected by.
var selector = regexp.MustCompile(`\b(northbound_[a-z0-9_]+|up)\b(?:{([^}]*)})?`)

// unknown lists what an expression names and the reference page does not.
func unknown(known map[string][]string, expr string) (out []string) {
	label := regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	for _, found := range selector.FindAllStringSubmatch(expr, -1) {
		labels, ok := known[found[1]]
		if !ok {
			out = append(out, "metric "+found[1])
		}
		for _, l := range label.FindAllStringSubmatch(found[2], -1) {
			if !slices.Contains(labels, l[1]) && !slices.Contains([]string{"instance", "job"}, l[1]) {
				out = append(out, "label "+l[1]+" of "+found[1])
			}
		}
	}
	return out
}

// Every metric and label that an alert names is in the reference page.
func TestAlertsNameMetrics(t *testing.T) {
	known := reference(t)
	for _, a := range alerts(t) {
		for _, u := range unknown(known, a.Expr) {
			t.Errorf("%s: %s is not in docs/reference/metrics.md", a.Alert, u)
		}
		if !selector.MatchString(a.Expr) {
			t.Errorf("%s: the expression %q names no metric", a.Alert, a.Expr)
		}
	}
	for _, expr := range []string{"northbound_no_such_metric", `northbound_database_up{database="nb",no="x"}`} {
		if len(unknown(known, expr)) != 1 {
			t.Errorf("what is wrong with %s was not found", expr)
		}
	}
}

// promtool runs Prometheus' own checks.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Prometheus takes the rules. Each alert fires in a test, and is quiet in one where all is well.
func TestAlertsFire(t *testing.T) {
	promtool(t, "check", "rules", alertsFile)
	promtool(t, "test", "rules", testsFile)
	var tests struct {
		Files    []string `json:"rule_files"`
		Interval string   `json:"evaluation_interval"`
		Tests    []struct {
			Name     string `json:"name"`
			Interval string `json:"interval"`
			Series   []any  `json:"input_series"`
			Rules    []struct {
				Name  string `json:"alertname"`
				Time  string `json:"eval_time"`
				Fires []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	load(t, testsFile, &tests)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, r := range test.Rules {
			if len(r.Fires) > 0 {
				fires[r.Name] = true
			} else if test.Name == "all is well" {
				quiet[r.Name] = true
			}
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !quiet[a.Alert] {
			t.Errorf("%s: tested that it fires: %v, and that it is quiet when all is well: %v", testsFile, fires[a.Alert],
				quiet[a.Alert])
		}
	}
}

// The chart has the same rules: helm reads no file from outside a chart. go test -update copies them.
func TestChartHasTheSameAlerts(t *testing.T) {
	inChart(t, alertsFile, "alerts.yaml")
}

// inChart compares a file with its copy in the chart, or makes the copy with -update.
func inChart(t *testing.T, original, name string) {
	t.Helper()
	copied := filepath.Join(root, "dist/helm/northbound/files", name)
	want := read(t, original)
	if *update {
		if err := os.WriteFile(copied, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, copied) != want {
		t.Errorf("%s is not %s: run the test with -update", copied, original)
	}
}
