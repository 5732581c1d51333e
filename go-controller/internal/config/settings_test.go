package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Every setting of an agent is one that the master publishes.
func TestSettings(t *testing.T) {
	published := DefaultCluster().Settings()
	for flag, value := range DefaultNode().Settings() {
		if flag == "mtu" || flag == "encap-type" {
			continue // published if the operator gives it to the master
		}
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

// An agent takes MTU and tunnel type from a master that was given them, and goes by its own otherwise.
func TestTunnelSettings(t *testing.T) {
	c, n := DefaultCluster(), DefaultNode()
	n.MTU = 1300
	if err := n.Settings().Agree(c.Settings(), "x"); err != nil {
		t.Errorf("the master was given nothing: %v", err)
	}
	c.Tunnels = Tunnels{EncapType: EncapVXLAN, MTU: 1400}
	err := n.Settings().Agree(c.Settings(), "x")
	want := "--encap-type geneve: the master runs with vxlan (x): want the same, or leave it out\n" +
		"--mtu 1300: the master runs with 1400 (x): want the same, or leave it out"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	c.Tunnels = Tunnels{EncapType: "gre", MTU: 500}
	for _, want := range []string{`--encap-type "gre": want geneve or vxlan`, "--mtu 500: want between 576 and 65535"} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// An agent knows which of its settings the master has changed since, and which of them the operator has set.
func TestOutdated(t *testing.T) {
	given := func(flag string) bool { return flag == "join-subnet" || flag == "b" }
	for what, c := range map[string]struct {
		own, before, now        Settings
		outdated, contradicting string
	}{
		"nothing":             {Settings{"a": "1,2"}, Settings{"a": "1,2"}, Settings{"a": "2,1", "more": "x"}, "[]", "[]"},
		"another value":       {Settings{"a": "1"}, Settings{"a": "1"}, Settings{"a": "2"}, "[a]", "[]"},
		"of a flag":           {Settings{"b": "1"}, Settings{"b": "1"}, Settings{"b": "2"}, "[]", "[b]"},
		"published now":       {Settings{"a": "0"}, Settings{}, Settings{"a": "2"}, "[a]", "[]"},
		"no more":             {Settings{"mtu": "1", "b": "1"}, Settings{"mtu": "1", "b": "1"}, Settings{}, "[mtu]", "[]"},
		"damaged":             {Settings{"a": "1"}, Settings{"a": "1"}, Settings{}, "[]", "[]"},
		"never":               {Settings{"a": "1"}, Settings{}, Settings{}, "[]", "[]"},
		"nothing was known":   {Settings{"a": "1", "c": "1"}, nil, Settings{"a": "1", "c": "2"}, "[c]", "[]"},
		"both":                {Settings{"a": "1", "b": "1"}, nil, Settings{"a": "3", "b": "3"}, "[a]", "[b]"},
		"one that means same": {Settings{"a": ""}, Settings{"a": ""}, Settings{"a": ""}, "[]", "[]"},
	} {
		outdated, contradicting := c.own.Outdated(c.before, c.now, given)
		if fmt.Sprint(outdated) != c.outdated || fmt.Sprint(contradicting) != c.contradicting {
			t.Errorf("%s: outdated %v, contradicting %v; want %s, %s", what, outdated, contradicting, c.outdated,
				c.contradicting)
		}
	}
}

// Settings that the master publishes are valid. What somebody else wrote may not be.
func TestPublishedSettingsAreChecked(t *testing.T) {
	c := DefaultCluster()
	c.Tunnels = Tunnels{EncapType: EncapVXLAN, MTU: 1400}
	if err := c.Settings().Validate(); err != nil {
		t.Error(err)
	}
	for flag, value := range map[string]string{"cluster-subnets": "x", "mtu": "abc", "encap-type": "gre",
		"join-subnet": "100.64.0.0", "k8s-service-cidrs": "10.96.0.0/16,x"} {
		s := c.Settings()
		s[flag] = value
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), flag[:3]) {
			t.Errorf("%s %q: error %v", flag, value, err)
		}
	}
}
