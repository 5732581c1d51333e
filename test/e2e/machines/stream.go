package machines

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Stream is a ping, or another command that prints seq=0, seq=1, ... for each reply, and goes on until the test ends.
type Stream struct {
	what    string
	cmd     *exec.Cmd
	replies atomic.Int64 // so far

	mu    sync.Mutex
	gaps  []string      // places where a sequence number is missing
	lost  int           // how many are missing
	pause time.Duration // the longest time between two replies
	ended string        // how the command ended, and what it complained of; "" while it runs
}

// besideVariable is set where tests of another cluster run at the same time.
const besideVariable = "SANDBOX_BESIDE"

// Beside is true where another cluster may run at the same time.
func Beside() bool { return os.Getenv(besideVariable) != "" }

// Alone fails a test that counts lost packets while another cluster runs beside it.
func Alone(t *testing.T) {
	t.Helper()
	if Beside() {
		t.Fatal("this test counts lost packets, and another cluster runs beside it: name it in test/run.sh, alone")
	}
}

// StartStream runs a ping. Its test needs the machine for itself.
func StartStream(t *testing.T, what string, ping func(context.Context) *exec.Cmd) *Stream {
	t.Helper()
	Alone(t)
	s, end, err := NewStream(what, ping)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return s
}

// NewStream runs a ping until end is called.
func NewStream(what string, ping func(context.Context) *exec.Cmd) (s *Stream, end func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	s = &Stream{what: what, cmd: ping(ctx)}
	var complaints bytes.Buffer
	s.cmd.Stderr, s.cmd.WaitDelay = &complaints, time.Second // ping may outlive the command
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("starting %s: %w", what, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.count(out)
		err := s.cmd.Wait() // a signal ends it
		s.mu.Lock()
		s.ended = fmt.Sprintf("; it has ended: %v, %.500s", err, strings.TrimSpace(complaints.String()))
		s.mu.Unlock()
	}()
	return s, func() {
		cancel()
		_ = out.Close() // ping may outlive the command: its next line then ends it
		<-ended
	}, nil
}

// count reads the command's output to its end. ping of iputils counts from 1, of busybox from 0. A sequence number has
// 16 bits (RFC 792).
func (s *Stream) count(out io.Reader) {
	// Not "From 10.0.0.1 icmp_seq=7 Destination Host Unreachable", which iputils prints, too.
	number := regexp.MustCompile(`(?:^|bytes from .*)seq=(\d+)`)
	next, before := -1, time.Now()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		m := number.FindStringSubmatch(lines.Text())
		var n int
		if m == nil {
			continue
		}
		if _, err := fmt.Sscan(m[1], &n); err != nil || next >= 0 && n != next {
			s.mu.Lock()
			s.lost += (n - next + 1<<16) % (1 << 16)
			s.gaps = append(s.gaps, fmt.Sprintf("%d after %d at %s", n, next-1, time.Now().Format("15:04:05.000")))
			s.mu.Unlock()
		}
		next = (n + 1) % (1 << 16)
		now := time.Now()
		s.mu.Lock()
		s.pause = max(s.pause, now.Sub(before))
		s.mu.Unlock()
		before = now
		s.replies.Add(1)
	}
}

// MoreReplies waits for n more replies in each stream.
func MoreReplies(t *testing.T, streams []*Stream, n int64) {
	t.Helper()
	missing := Missing(streams, n)
	Eventually(t, "more replies", func(context.Context) string { return missing() })
}

// Missing says which stream does not have n more replies than now yet; "" for none.
func Missing(streams []*Stream, n int64) func() string {
	var want []int64
	for _, s := range streams {
		want = append(want, s.replies.Load()+n)
	}
	return func() string {
		for i, s := range streams {
			if s.replies.Load() < want[i] {
				return fmt.Sprintf("%s, want %d", s, want[i])
			}
		}
		return ""
	}
}

// NoGaps fails if a stream lost a packet since the last call.
func NoGaps(t *testing.T, streams []*Stream) {
	t.Helper()
	SingleGaps(t, streams, 0)
}

// SingleGaps fails if a stream lost more than so many packets since the last call, or two in a row. It is for streams
// between nodes while links of these come and go: Open vSwitch's userspace datapath may lose a packet each time
// (docs/operate/upgrade.md, Limits).
func SingleGaps(t *testing.T, streams []*Stream, most int) {
	t.Helper()
	for _, s := range streams {
		s.mu.Lock()
		if s.lost > most || s.lost > len(s.gaps) {
			t.Errorf("%s: %d packets were lost in %d places of %d, want at most %d, each alone: %v", s.what, s.lost,
				len(s.gaps), s.replies.Load(), most, s.gaps)
		}
		s.gaps, s.lost = nil, 0
		s.mu.Unlock()
	}
}

// Replies is how many packets came back so far.
func (s *Stream) Replies() int64 { return s.replies.Load() }

// Lost is how many packets were lost since the last Take or Reset, of those before the last reply.
func (s *Stream) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Take forgets what was lost so far, and returns how much that was, and what String said of it.
func (s *Stream) Take() (lost int, said string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost, said = s.lost, s.say()
	s.gaps, s.lost, s.pause = nil, 0, 0
	return lost, said
}

// Reset is Take without the number.
func (s *Stream) Reset() string {
	_, said := s.Take()
	return said
}

// String says how many packets came back, after which longest pause, and how many were lost in which places.
func (s *Stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.say()
}

func (s *Stream) say() string {
	return fmt.Sprintf("%s: %d replies, the longest pause %s, %d packets lost %v%s", s.what, s.replies.Load(),
		s.pause.Round(time.Millisecond), s.lost, s.gaps, s.ended)
}
