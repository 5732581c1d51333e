package config

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Every setting of an agent is one that the master publishes.
func TestSettings(t *testing.T) {
	published := DefaultCluster().Settings()
	for flag, value := range DefaultNode().Settings() {
		if got, ok := published[flag]; !ok || got != value {
			t.Errorf("the master publishes %s %q (%v); an agent's default is %q", flag, got, ok, value)
		}
	}
	if err := DefaultNode().Settings().Agree(published, "x"); err != nil {
		t.Error(err)
	}
	if _, ok := published["router-name"]; ok {
		t.Error("the router's name is published although the operator did not give it")
	}
}

func TestAgree(t *testing.T) {
	n := DefaultNode()
	slices.Reverse(n.JoinSubnets) // the order means nothing
	n.ServiceCIDRs = nil
	n.Services.ExternalCIDRs = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	err := n.Settings().Agree(DefaultCluster().Settings(), "ConfigMap x")
	if err == nil {
		t.Fatal("no error although two settings differ")
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{
		`--external-ip-cidrs 192.0.2.0/24: the master runs with "" (ConfigMap x): want the same, or leave it out`,
		`--k8s-service-cidrs "": the master runs with 10.96.0.0/16 (ConfigMap x): want the same, or leave it out`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("errors\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// An older master publishes less.
	if err := n.Settings().Agree(Settings{"max-service-vips": "4096"}, "x"); err != nil {
		t.Error(err)
	}
}
