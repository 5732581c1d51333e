package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/northbound-net/northbound/go-controller/internal/version"
)

// All daemons say which build they are.
func TestBuildInfo(t *testing.T) {
	v := version.Get()
	want := map[string]string{"version": v.Version, "commit": v.Commit, "goversion": v.Go}
	for name, register := range map[string]func(prometheus.Registerer){
		"master":   func(r prometheus.Registerer) { NewMaster(r) },
		"node":     func(r prometheus.Registerer) { NewNode(r) },
		"database": func(r prometheus.Registerer) { NewDatabase(r) },
	} {
		registry := prometheus.NewRegistry()
		register(registry)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range families {
			if f.GetName() != "northbound_build_info" {
				continue
			}
			m := f.GetMetric()[0]
			found = m.GetGauge().GetValue() == 1 && len(m.GetLabel()) == len(want)
			for _, l := range m.GetLabel() {
				if l.GetValue() != want[l.GetName()] {
					t.Errorf("%s: label %s is %q, want %q", name, l.GetName(), l.GetValue(), want[l.GetName()])
				}
			}
		}
		if !found {
			t.Errorf("%s: no northbound_build_info with value 1 and the labels %v", name, want)
		}
	}
}
