package machines

import (
	"strings"
	"testing"
)

// TestRepliesAreCounted reads what pings and connections print. Each lacks one packet.
func TestRepliesAreCounted(t *testing.T) {
	for what, lines := range map[string]string{
		"ping of iputils": `PING 10.128.1.3 (10.128.1.3) 56(84) bytes of data.
64 bytes from 10.128.1.3: icmp_seq=1 ttl=63 time=0.321 ms
From 10.128.0.1 icmp_seq=2 Destination Host Unreachable
64 bytes from 10.128.1.3: icmp_seq=3 ttl=63 time=0.286 ms
`,
		"ping of busybox": `PING fd01::3 (fd01::3): 56 data bytes
64 bytes from fd01::3: seq=1 ttl=63 time=0.545 ms
64 bytes from fd01::3: seq=3 ttl=63 time=0.196 ms
`,
		"a connection":                 "seq=1\nseq=3\n",
		"numbers that begin once more": "seq=65535\nseq=1\n",
	} {
		s := &Stream{what: what}
		s.count(strings.NewReader(lines))
		if s.Replies() != 2 || s.Lost() != 1 {
			t.Errorf("%s; want 2 replies and 1 packet lost", s)
		}
	}
}
