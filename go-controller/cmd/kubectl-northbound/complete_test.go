package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/kube/remote"
)

// TestCandidates completes the last word of command lines.
func TestCandidates(t *testing.T) {
	list := func(_ context.Context, o remote.Options, kind string) []string {
		return map[string][]string{"node": {"n1", "n2"}, "pod": {o.Default + "-web-1", o.Default + "-web-2"},
			"svc": {o.Default + "-web"}}[kind]
	}
	for typed, want := range map[string]string{
		"sta":                        "status",
		"--con":                      "--context",
		"--context ":                 "",
		"--context other sta":        "status",
		"-n shop tcpdump shop-web-1": "shop-web-1",
		"doctor ":                    "n1 n2",
		"doctor n1 ":                 "n2",
		"trace x y --detailed --mi":  "--minimal",
		"-n a trace a-web-1 ":        "a-web-1 a-web-2 svc/a-web",
		"--namespace=a trace x svc/": "svc/a-web",
		"explain s":                  "svc/",
		"-n b explain pod/b-web-":    "pod/b-web-1 pod/b-web-2",
		"explain netpol/":            "",
		"nbctl sh":                   "show",
		"vsctl n":                    "n1 n2",
		"vsctl n1 sh":                "show",
		"database n":                 "nb northd",
		"database nb cluster/s":      "cluster/status",
		"appctl n1 ovs-v":            "ovs-vswitchd",
		"ofctl n1 show br-int ":      "",
		"nothing ":                   "",
	} {
		words := strings.Split(typed, " ")
		have := readLine(newApp(), words[:len(words)-1]).candidates(t.Context(), words[len(words)-1], list)
		slices.Sort(have)
		if text := strings.Join(have, " "); text != want {
			t.Errorf("kubectl northbound %s: %q, want %q", typed, text, want)
		}
	}
}
