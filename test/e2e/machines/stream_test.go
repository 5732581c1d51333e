package machines

import (
	"context"
	"os/exec"
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

// A command that ends by itself says so, and what it complained of.
func TestStreamEnds(t *testing.T) {
	s, end, err := NewStream("a command", func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, "sh", "-c", "echo seq=0; echo no such host >&2; exit 3")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	const want = "a command: 1 replies, the longest pause 0s, 0 packets lost []; it has ended: exit status 3, no such host"
	Eventually(t, "the command ends", func(context.Context) string {
		if got := s.String(); !strings.HasSuffix(got, "no such host") {
			return got
		}
		return ""
	})
	s.Reset() // the pause
	if got := s.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
