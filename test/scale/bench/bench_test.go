package bench

import (
	"strings"
	"testing"
	"time"
)

func TestPercentiles(t *testing.T) {
	var d []time.Duration
	for i := 100; i > 0; i-- {
		d = append(d, time.Duration(i)*time.Millisecond)
	}
	if got, want := percentiles(d), "50.0 ms, 95.0 ms, 99.0 ms"; got != want {
		t.Errorf("percentiles of 1 to 100 ms are %s, want %s", got, want)
	}
	if got, want := percentiles(d[:1]), "1.0 ms, 1.0 ms, 1.0 ms"; got != want {
		t.Errorf("percentiles of one sample are %s, want %s", got, want)
	}
}

func TestValidate(t *testing.T) {
	good := Config{Pods: 2000, Nodes: 100, RestartPods: 10000, Services: 1000, Adds: 50, Only: []string{"burst"}}
	if err := good.Validate(); err != nil {
		t.Errorf("%+v: %v", good, err)
	}
	for want, change := range map[string]func(*Config){
		"want at least 1 of each":                          func(c *Config) { c.Pods = 0 },
		"have room for 512":                                func(c *Config) { c.Nodes = 513 },
		"60000 pods need at least 119 nodes":               func(c *Config) { c.RestartPods = 60000 },
		"--services 2001: want 1 to 2000":                  func(c *Config) { c.Services = 2001 },
		"--adds 61: want 1 to 60":                          func(c *Config) { c.Adds = 61 },
		`--only "bursts": want some of raw,backlog,burst,`: func(c *Config) { c.Only = []string{"bursts"} },
	} {
		bad := good
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", bad, err, want)
		}
	}
}
