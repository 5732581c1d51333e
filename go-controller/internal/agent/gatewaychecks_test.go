package agent

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// mayBeLost is how many UDP questions of a check may stay without an answer:
// nobody sends them again.
const mayBeLost = 2

// checkBoth has the pod, the host and the outside talk at the same time: each
// of rounds asks over TCP and UDP in both families. Nobody sends a UDP packet
// again that is lost, as one is now and then on a busy machine: that is asked
// again, but hardly ever.
func checkBoth(t *testing.T, rounds int) {
	t.Helper()
	var asked, lost atomic.Int32
	var wg sync.WaitGroup
	ask := func(netns, network, address, source string) {
		wg.Go(func() {
			for range rounds {
				from, err := testkit.AskOnce(netns, network, address)
				if err != nil && network == "udp" && lost.Add(1) <= mayBeLost {
					from, err = testkit.AskOnce(netns, network, address)
				}
				if err != nil || from != source {
					t.Errorf("from %q to %s %s: source %q, %v; want %s", netns, network, address, from, err, source)
					return
				}
				asked.Add(1)
			}
		})
	}
	for i, shared := range sharedIPs {
		for _, network := range []string{"tcp", "udp"} {
			ask("a", network, outside[i], shared)
			ask("a", network, far[i], shared)
			ask("", network, outside[i], shared)
			ask("", network, far[i], shared)
			ask("out", network, hostSvc[i], []string{"172.18.0.1", "fd18::1"}[i])
		}
	}
	wg.Wait()
	if want := int32(rounds * 20); asked.Load() != want {
		t.Errorf("%d answers, want %d", asked.Load(), want)
	}
}

// checkPorts: the host's questions are answered although the pod has asked the
// same server from as many ports before, whose connections are remembered.
func checkPorts(t *testing.T) {
	t.Helper()
	const questions = 400 // from 28,232 ports: without a range of the pods' own about 6 would meet
	for _, address := range outside {
		for _, netns := range []string{"a", ""} {
			lost := 0
			for i := range questions {
				if _, err := testkit.AskOnce(netns, "udp", address); err != nil {
					if lost++; lost > mayBeLost {
						t.Fatalf("question %d from %q to %s: %v, and %d before", i, netns, address, err, lost-1)
					}
				}
			}
		}
	}
}

// checkPings has all three ping at the same time: each echo is answered once.
func checkPings(t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup
	for _, args := range []string{
		"netns exec a ping 172.18.0.1", "netns exec a ping fd18::1", "netns exec out ping 172.18.0.2",
		"netns exec out ping fd18::2",
		"netns exec far ping 172.18.0.2", "netns exec far ping fd18::2", "vrf exec default ping 172.18.0.1",
		"vrf exec default ping fd18::1",
	} {
		wg.Go(func() {
			words := strings.Fields(strings.Replace(args, "ping", "ping -q -c 20 -i 0.05 -W 3", 1))
			name := "ip"
			if words[0] == "vrf" {
				name, words = words[3], words[4:]
			}
			out, err := exec.Command(testkit.Tool(t, name), words...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "20 packets transmitted, 20 received, 0% packet loss") {
				t.Errorf("%s: %v\n%s", args, err, out) // duplicates are in that line too
			}
		})
	}
	wg.Wait()
}

// stream is a TCP connection that is used all the time.
type stream struct {
	count atomic.Int32
	stop  chan struct{}
	done  chan struct{} // closed when it has ended
	err   error         // why, once it has
}

func startStream(t *testing.T, netns, address string) *stream {
	t.Helper()
	w, err := testkit.DialWhoami(netns, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer w.Close()
		for s.err == nil {
			select {
			case <-s.stop:
				return
			default:
			}
			_, s.err = w.Ask("still there")
			s.count.Add(1)
		}
	}()
	return s
}

// check fails the test if the stream has ended.
func (s *stream) check(t *testing.T, when string) {
	t.Helper()
	before := s.count.Load()
	testkit.Eventually(t, "the stream goes on "+when, func() string {
		select {
		case <-s.done:
			t.Fatalf("a stream ended after %d answers, %s: %v", s.count.Load(), when, s.err)
		default:
		}
		if s.count.Load() == before {
			return fmt.Sprintf("no answer after %d", before)
		}
		return ""
	})
}

// checkPathMTU: that a packet is too large for the network behind the outside
// host is told to whoever sent it, pod or host.
func checkPathMTU(t *testing.T) {
	t.Helper()
	for _, in := range []string{"", "-n a "} {
		ping := "ping"
		if in != "" {
			ping = "ip netns exec a ping"
		}
		for _, dest := range []string{"192.0.2.1", "2001:db8::1"} {
			script := fmt.Sprintf("%s -c 2 -i 0.2 -W 3 -M do -s 1350 %s && exit 1; ip %sroute get %s", ping, dest, in, dest)
			if out := testkit.Run(t, "sh", "-c", script); !strings.Contains(out, "mtu 1300") {
				t.Errorf("whoever is to learn the path MTU of 1300 has not: %s:\n%s", script, out)
			}
		}
	}
}
