package resolve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// bed is a Resolver whose servers say what a test wants, and whose clock stands still while nothing is due.
type bed struct {
	*Resolver
	t     *testing.T
	known map[string]Known

	mu    sync.Mutex
	says  map[string]func() (answer, error)
	asked map[string][]time.Duration // since the start
	start time.Time
	takes map[string]time.Duration // how long an answer takes; set before the name is followed
}

// grace is that of all beds.
const grace = 2 * time.Minute

// within runs a test with a Resolver for IPv4.
func within(t *testing.T, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t, known: map[string]Known{}, says: map[string]func() (answer, error){},
			asked: map[string][]time.Duration{}, start: time.Now(), takes: map[string]time.Duration{}}
		b.Resolver = New(Options{Families: []names.Family{names.IPv4}, Grace: grace, Log: slog.New(slog.DiscardHandler),
			Metrics: metrics.NewMaster(prometheus.NewRegistry())})
		b.ask = func(_ context.Context, name string, _ bool) (answer, error) {
			time.Sleep(b.takes[name])
			b.mu.Lock()
			defer b.mu.Unlock()
			b.asked[name] = append(b.asked[name], time.Since(b.start))
			return b.says[name]()
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { b.Run(ctx); close(ended) }()
		f(b)
		cancel()
		<-ended
	})
}

// say is what the servers say of a name from now on.
func (b *bed) say(name string, ttl time.Duration, addrs ...string) {
	var a answer
	for _, text := range addrs {
		a.addrs = append(a.addrs, netip.MustParseAddr(text))
	}
	if a.ttl = ttl; len(addrs) == 0 {
		a.none = "DNS knows no such name"
	}
	b.sayThat(name, func() (answer, error) { return a, nil })
}

func (b *bed) fail(name, why string) {
	b.sayThat(name, func() (answer, error) { return answer{}, errors.New(why) })
}

func (b *bed) sayThat(name string, f func() (answer, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.says[name] = f
}

// count is how often a name was asked for.
func (b *bed) count(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked[name])
}

// pass lets time pass, and takes what was found out.
func (b *bed) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	changed, gone := b.Take()
	maps.Copy(b.known, changed)
	for _, name := range gone {
		delete(b.known, name)
	}
}

// want checks what is known of a name: addresses, then the trouble.
func (b *bed) want(name, want string) {
	b.t.Helper()
	k, ok := b.known[name]
	got := strings.TrimSpace(fmt.Sprint(k.Addrs, " ", k.Trouble))
	switch {
	case k.Pending:
		got += ", pending"
	case !ok:
		got = "nothing"
	}
	if got != want {
		b.t.Errorf("%s after %s: %s, want %s", name, time.Since(b.start), got, want)
	}
}

// An address that is gone from the answers is kept for the time to live and the grace, and no longer.
func TestGrace(t *testing.T) {
	within(t, func(b *bed) {
		b.say("a", time.Minute, "192.0.2.1")
		b.Follow([]string{"a"})
		b.pass(time.Second)
		b.want("a", "[192.0.2.1]")
		b.say("a", time.Minute, "192.0.2.2")
		b.pass(time.Minute)
		b.want("a", "[192.0.2.1 192.0.2.2]")
		b.pass(grace - 2*time.Second)
		b.want("a", "[192.0.2.1 192.0.2.2]")
		b.pass(2 * time.Second)
		b.want("a", "[192.0.2.2]")
		b.say("a", 0)
		b.pass(time.Minute)
		b.want("a", "[192.0.2.2]")
		b.pass(grace + time.Minute)
		b.want("a", "[] DNS knows no such name")
		b.Follow(nil)
		b.pass(0)
		b.want("a", "nothing")
	})
}

// The time to live counts within limits.
func TestPace(t *testing.T) {
	for ttl, want := range map[time.Duration]int{0: 720, time.Minute: 60, 100 * time.Hour: 6} {
		within(t, func(b *bed) {
			b.say("a", ttl, "192.0.2.1")
			b.Follow([]string{"a"})
			b.pass(time.Hour - time.Second)
			if n := b.count("a"); n != want {
				t.Errorf("time to live %s: asked %d times in an hour, want %d", ttl, n, want)
			}
		})
	}
}

// A name is asked for in time, however long an answer takes and however long other names live.
func TestSlowAnswers(t *testing.T) {
	within(t, func(b *bed) {
		b.say("long", 10*time.Minute, "192.0.2.2")
		b.say("slow", minTTL, "192.0.2.1")
		b.takes["slow"] = 50 * time.Millisecond
		b.Follow([]string{"long", "slow"})
		b.pass(time.Minute)
		if n := b.count("slow"); n < 6 {
			t.Errorf("asked %d times in a minute, want about one time in 5 to 10 seconds", n)
		}
	})
}

// While nobody answers, what was known is kept for a day. Users hear of it, and questions become rare.
func TestFailure(t *testing.T) {
	within(t, func(b *bed) {
		b.say("a", time.Minute, "192.0.2.1")
		b.fail("b", "DNS answers SERVFAIL")
		b.Follow([]string{"a", "b"})
		b.pass(time.Second)
		b.want("a", "[192.0.2.1]")
		b.want("b", "[], pending")
		b.fail("a", "DNS answers SERVFAIL")
		b.pass(10 * time.Minute)
		b.want("a", "[192.0.2.1] DNS answers SERVFAIL for IPv4: the addresses from before are accepted")
		b.want("b", "[] DNS answers SERVFAIL for IPv4")
		before := b.count("a")
		b.pass(time.Hour)
		if n := b.count("a") - before; n < 11 || n > 13 {
			t.Errorf("asked %d times in an hour of failure, want 12", n)
		}
		b.pass(22 * time.Hour)
		b.want("a", "[192.0.2.1] DNS answers SERVFAIL for IPv4: the addresses from before are accepted")
		b.pass(2 * time.Hour)
		b.want("a", "[] DNS answers SERVFAIL for IPv4")
		b.say("a", time.Minute, "192.0.2.7")
		b.pass(maxBackoff)
		b.want("a", "[192.0.2.7]")
	})
}

// What an earlier Resolver found is kept until there is an answer, and for the grace after that.
func TestPresumed(t *testing.T) {
	within(t, func(b *bed) {
		b.fail("a", "no server of DNS answers in time")
		b.Follow([]string{"a"})
		b.Presume(map[string][]netip.Addr{"a": {netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
			"nobody's": {netip.MustParseAddr("192.0.2.1")}})
		b.pass(0)
		b.want("a", "[192.0.2.1], pending")
		b.want("nobody's", "nothing")
		b.pass(4 * time.Second)
		b.say("a", time.Hour, "192.0.2.2")
		b.pass(2 * time.Second)
		b.want("a", "[192.0.2.1 192.0.2.2]")
		b.pass(grace)
		b.want("a", "[192.0.2.2]")
	})
}

// A name whose servers send ever other addresses, thousands of them, costs a few rows and delays nobody.
func TestHostileName(t *testing.T) {
	within(t, func(b *bed) {
		next := netip.MustParseAddr("203.0.113.0")
		names := []string{"good.example"}
		for i := range 100 {
			name := fmt.Sprintf("evil%d.example", i)
			names = append(names, name)
			b.sayThat(name, func() (answer, error) {
				var a answer
				for range 1000 {
					a.addrs, next = append(a.addrs, next), next.Next()
				}
				return a, nil
			})
		}
		b.say("good.example", 10*time.Second, "192.0.2.1")
		b.Follow(names)
		b.pass(time.Minute)
		b.want("good.example", "[192.0.2.1]")
		if n := b.count("good.example"); n < 5 {
			t.Errorf("the good name was asked for %d times in a minute, want 5 or more", n)
		}
		for _, name := range names[1:] {
			if n := len(b.known[name].Addrs); n != mostAddresses {
				t.Errorf("%s has %d addresses, want %d", name, n, mostAddresses)
			}
			if n := b.count(name); n > 2 {
				t.Errorf("%s was asked for %d times in a minute", name, n)
			}
		}
	})
}

// Many names at once are asked for at a limited rate, and each gets its turn.
func TestManyNames(t *testing.T) {
	within(t, func(b *bed) {
		var names []string
		for i := range 2000 {
			names = append(names, fmt.Sprintf("n%d.example", i))
			b.say(names[i], 0, "192.0.2.1")
		}
		b.Follow(names)
		b.pass(2 * time.Minute)
		var counts []int
		for _, name := range names {
			counts = append(counts, b.count(name))
		}
		if least, most := slices.Min(counts), slices.Max(counts); least < 2 || most > 4 {
			t.Errorf("names were asked for %d to %d times in two minutes, want 3 times each", least, most)
		}
	})
}

// A question that goes on when its name is no longer followed changes nothing.
func TestForgottenWhileAsked(t *testing.T) {
	within(t, func(b *bed) {
		b.sayThat("a", func() (answer, error) {
			time.Sleep(time.Second)
			return answer{addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, nil
		})
		b.Follow([]string{"a"})
		b.pass(time.Second / 2)
		b.Follow(nil)
		b.pass(time.Second)
		b.want("a", "nothing")
	})
}
