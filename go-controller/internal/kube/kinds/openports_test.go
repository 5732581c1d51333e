package kinds_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

func TestDecodeOpenPorts(t *testing.T) {
	many := strings.Repeat("- {protocol: tcp, port: 80}\n", 33)
	for raw, want := range map[string]string{
		"- protocol: tcp\n  port: 80\n- protocol: udp\n  port: 53\n":                          "tcp/80, udp/53",
		`[{"protocol": "UDP", "port": 53}, {"protocol": "icmp"}]`:                             "icmp, udp/53",
		"[{protocol: tcp, port: 443}, {protocol: tcp, port: 80}, {protocol: tcp, port: 443}]": "tcp/80, tcp/443",
		"[{protocol: sctp, port: 65535}]":                                                     "sctp/65535",
		"---\n- {protocol: tcp, port: 80}\n":                                                  "tcp/80",
		"# ours\n---\n- {protocol: udp, port: 53}\n---\n":                                     "udp/53",
		"[]": "",
		"":   "",

		"[{protocol: tcp}]":                                "!entry 0 has no port from 1 to 65535",
		"[{protocol: tcp, port: 0}]":                       "!entry 0 has no port",
		"[{protocol: icmp}, {protocol: udp, port: 65536}]": "!entry 1 has no port",
		"[{protocol: tcp, port: http}]":                    "!it is no list of protocol and port",
		"[{protocol: icmp, port: 8}]":                      "!entry 0 has protocol icmp and a port",
		"[{protocol: igmp, port: 8}]":                      `!entry 0 has protocol "igmp", want tcp, udp, sctp or icmp`,
		"[{protocol: tcp, port: 80, host: 1}]":             "!it is no list",
		"tcp: 80":                                          "!it is no list",
		"- {protocol: icmp}\n---\n- {protocol: icmp}\n":    "!it has several YAML documents, want one",
		many:                            "!it has 33 entries, want at most 32",
		"#" + strings.Repeat(" ", 4096): "!it has 4097 bytes, want at most 4096",
	} {
		got, problems := decode[*cluster.Pod](t, &corev1.Pod{
			ObjectMeta: meta("red", "p", map[string]string{annotation.OpenPorts: raw})})
		refused, bad := strings.CutPrefix(want, "!")
		if !bad && (got.Opens.String() != want || len(problems) > 0) {
			t.Errorf("%.40q: %q, %v; want %q", raw, got.Opens, problems, want)
		}
		if bad && (got.Opens != cluster.OpenPorts{} || len(problems) != 1 || problems[0].Reason != "InvalidOpenPorts" ||
			!strings.Contains(problems[0].Message, fmt.Sprintf("%s: %.64q: %s", annotation.OpenPorts, raw, refused))) {
			t.Errorf("%.40q: %q, %v; want nothing, and %q", raw, got.Opens, problems, refused)
		}
	}
}
