package chart

import (
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/test/sandbox"
)

// object is a part of a manifest.
type object = map[string]any

// render renders the chart with values, and returns its objects by kind and name.
func render(t *testing.T, values ...string) (map[string]object, error) {
	t.Helper()
	args := []string{"template", sandbox.ReleaseName, source, "--namespace", sandbox.Namespace}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	text, err := exec.CommandContext(t.Context(), "../../../bin/helm", args...).Output()
	if err != nil {
		return nil, err
	}
	out := map[string]object{}
	for _, part := range strings.Split("\n"+string(text), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatal(err)
		}
		if name, ok := at(o, "metadata", "name").(string); ok {
			out[o["kind"].(string)+"/"+name] = o
		}
	}
	return out, nil
}

// at follows keys.
func at(value any, keys ...string) any {
	for _, k := range keys {
		o, _ := value.(object)
		value = o[k]
	}
	return value
}

// The chart has the Prometheus Operator read every daemon, and take the alerts of the file. Without the values it makes
// neither.
func TestMonitoringObjects(t *testing.T) {
	plain, err := render(t)
	if err != nil {
		t.Fatal(err)
	}
	for name := range plain {
		if strings.Contains(name, "Monitor") || strings.Contains(name, "Prometheus") || strings.Contains(name, "metrics") {
			t.Errorf("without monitoring.enabled the chart makes %s", name)
		}
	}
	if _, err := render(t, "monitoring.operator=true"); err == nil {
		t.Error("monitoring.operator without monitoring.enabled is no error")
	}
	all, err := render(t, "monitoring.enabled=true", "monitoring.operator=true", "monitoring.labels.release=mine")
	if err != nil {
		t.Fatal(err)
	}
	var file object
	text, err := os.ReadFile("../../../dist/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	rule := all["PrometheusRule/northbound"]
	if have := at(rule, "spec", "groups"); have == nil || !reflect.DeepEqual(have, file["groups"]) {
		t.Errorf("the PrometheusRule has the groups %v, want those of alerts.yaml", have)
	}
	monitor := all["PodMonitor/northbound"]
	for name, o := range map[string]object{"rule": rule, "monitor": monitor} {
		if have := at(o, "metadata", "labels", "release"); have != "mine" {
			t.Errorf("the %s has the label release=%v, want mine", name, have)
		}
	}
	endpoints, _ := at(monitor, "spec", "podMetricsEndpoints").([]any)
	expressions, _ := at(monitor, "spec", "selector", "matchExpressions").([]any)
	if len(endpoints) != 1 || at(endpoints[0], "port") != "metrics" || len(expressions) != 1 {
		t.Fatalf("the PodMonitor is %v, want one port, metrics, and one expression", monitor)
	}
	secret := at(endpoints[0], "authorization", "credentials", "name").(string)
	if all["Secret/"+secret] == nil {
		t.Errorf("the chart makes no Secret %q, which the PodMonitor names", secret)
	}
	for _, app := range at(expressions[0], "values").([]any) {
		set := all["DaemonSet/"+app.(string)]
		containers, _ := at(set, "spec", "template", "spec", "containers").([]any)
		found := 0
		for _, c := range containers {
			ports, _ := at(c, "ports").([]any)
			for _, p := range ports {
				if at(p, "name") == "metrics" {
					found++
				}
			}
		}
		if found != 1 {
			t.Errorf("DaemonSet %s has %d ports named metrics, want 1", app, found)
		}
	}
}

// The chart brings Grafana the dashboard of the file, with the labels that are wanted.
func TestDashboard(t *testing.T) {
	const name = "ConfigMap/northbound-dashboard"
	if _, err := render(t, "monitoring.dashboard=true"); err == nil {
		t.Error("monitoring.dashboard without monitoring.enabled is no error")
	}
	plain, err := render(t, "monitoring.enabled=true")
	if err != nil || plain[name] != nil {
		t.Errorf("without monitoring.dashboard: %v, and the chart makes %v", err, plain[name])
	}
	text, err := os.ReadFile("../../../dist/grafana/northbound.json")
	if err != nil {
		t.Fatal(err)
	}
	for value, labels := range map[string]object{
		"": {"grafana_dashboard": "1", "mine": nil},
		"monitoring.dashboardLabels.mine=yes,monitoring.dashboardLabels.grafana_dashboard=null": {
			"grafana_dashboard": nil, "mine": "yes"},
	} {
		all, err := render(t, "monitoring.enabled=true,monitoring.dashboard=true", value)
		if err != nil {
			t.Fatal(err)
		}
		if have := at(all[name], "data", "northbound.json"); have != string(text) {
			t.Errorf("the ConfigMap's dashboard is not that of dist/grafana: %v", have)
		}
		for label, want := range labels {
			if have := at(all[name], "metadata", "labels", label); have != want {
				t.Errorf("with %q: the label %s is %v, want %v", value, label, have, want)
			}
		}
	}
}
