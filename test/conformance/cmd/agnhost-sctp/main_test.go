package main

import (
	"maps"
	"testing"
	"time"
)

// Only questions over SCTP are asked here. agnhost gets all others, and those that it would refuse.
func TestQuestion(t *testing.T) {
	for _, c := range []struct {
		args    []string
		to      string
		timeout time.Duration
		ok      bool
	}{
		{[]string{"--timeout=3s", "--protocol=sctp", "10.0.0.1:9003"}, "10.0.0.1:9003", 3 * time.Second, true},
		{[]string{"--protocol=sctp", "[fd00::1]:9003"}, "[fd00::1]:9003", time.Minute, true},
		{[]string{"10.0.0.1:80", "--timeout=3s", "--protocol=sctp"}, "10.0.0.1:80", 3 * time.Second, true},
		{[]string{"10.0.0.1:80", "--protocol=sctp", "10.0.0.2:80"}, "", time.Minute, false},
		{[]string{"--timeout=3s", "--protocol=tcp", "10.0.0.1:80"}, "10.0.0.1:80", 3 * time.Second, false},
		{[]string{"10.0.0.1:80"}, "10.0.0.1:80", time.Minute, false},
		{[]string{"--protocol=sctp", "--udp-data=x", "10.0.0.1:80"}, "", time.Minute, false},
		{[]string{"--protocol=sctp"}, "", time.Minute, false},
	} {
		to, timeout, ok := question(c.args)
		if ok != c.ok || ok && (to != c.to || timeout != c.timeout) {
			t.Errorf("%q: %q, %v, %v", c.args, to, timeout, ok)
		}
	}
}

// The environment names the ports to serve.
func TestServed(t *testing.T) {
	got := served([]string{"PATH=/bin", "SERVE_SCTP_PORT_9003=foo", "SERVE_PORT_80=x", "SERVE_SCTP_PORT_9005=a=b"})
	if want := map[string]string{"9003": "foo", "9005": "a=b"}; !maps.Equal(got, want) {
		t.Errorf("ports %v, want %v", got, want)
	}
}
