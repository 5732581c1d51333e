package policy

import (
	"context"
	"flag"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

const (
	patience   = 10 * time.Minute // answers may be lost, and rows may be missing, for as long
	firstWait  = 2 * time.Second  // for answers; each round waits twice as long as the one before it
	longest    = 16 * time.Second
	atOnce     = 3  // clients that ask at the same time
	complaints = 40 // wrong answers that a failing test reports
)

// TestPolicies asks what policies allow and deny.
func TestPolicies(t *testing.T) {
	b := up(t, "policy")
	t.Run("every combination", b.everyCombination)
	t.Run("pods are born", func(t *testing.T) { b.born(t, "", false) })
	t.Run("pods are born while policies change and the master dies", func(t *testing.T) { b.born(t, "-2", true) })
	t.Run("every combination of tiers", func(t *testing.T) { b.tiers(t, tieredRules) })
	t.Run("conditions", b.conditions)
	t.Run("random sets", b.randomSets)
	t.Run("peers and ports", b.peersAndPorts)
	t.Run("peers and ports of tiers", func(t *testing.T) { b.tiers(t, crossedTiers) })
}

// TestChangedPoliciesLoseNoPacket changes policies, and what they are about, while allowed connections are in use.
func TestChangedPoliciesLoseNoPacket(t *testing.T) {
	b := up(t, "changes", "--policy-dns-servers", nameServer(), "--policy-dns-grace", "1s")
	t.Run("labels", b.labels)
	t.Run("cluster policies", b.clusterPolicies)
	t.Run("domain names", b.domainNames)
}

func (b *bed) everyCombination(t *testing.T) {
	served := b.world(t)
	in, out := columnsOf(rules())
	machines.FlowsInSync(t, b.Cluster) // what is not there yet must not pass for denied
	b.askAll(t, b.cells(machines.Protocols(t), served, in, out))
}

// peersAndPorts asks about rules that have both.
func (b *bed) peersAndPorts(t *testing.T) {
	served := b.world(t)
	b.makeRules(t, crossed(), served)
	in, out := columnsOf(crossed())
	machines.FlowsInSync(t, b.Cluster)
	b.askAll(t, b.cells(machines.Protocols(t), served, in, out))
}

// askAll asks until every answer is right. It reports what is wrong when patience ends.
func (b *bed) askAll(t *testing.T, cells []*cell) bool {
	t.Helper()
	wrong := b.untilRight(t, cells)
	for i, c := range wrong {
		if i == complaints {
			t.Errorf("and %d more", len(wrong)-i)
			break
		}
		t.Errorf("%s: %s", c, c.wrong)
	}
	t.Logf("%d questions", len(cells))
	return len(wrong) == 0
}

// untilRight asks until every answer is right, or patience ends. The result is the cells with wrong answers.
func (b *bed) untilRight(t *testing.T, cells []*cell) []*cell {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for wait := firstWait; len(cells) > 0 && ctx.Err() == nil; wait = min(2*wait, longest) {
		b.round(ctx, cells, wait)
		cells = slices.DeleteFunc(slices.Clone(cells), func(c *cell) bool { return c.wrong == "" })
		if len(cells) > 0 {
			t.Logf("%d wrong answers, such as: %s: %s", len(cells), cells[0], cells[0].wrong)
		}
	}
	return cells
}

// round asks everything once. A client asks all its questions at the same time.
func (b *bed) round(ctx context.Context, cells []*cell, wait time.Duration) {
	byAsker := map[string][]*cell{}
	for _, c := range cells {
		byAsker[c.asks.Name] = append(byAsker[c.asks.Name], c)
	}
	var asking sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, mine := range byAsker {
		asking.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			ask(ctx, mine, wait)
		})
	}
	asking.Wait()
}

// ask asks the questions of one client. Where the client itself can't be reached, all its answers are wrong, and it is
// left alone for a moment.
func ask(ctx context.Context, cells []*cell, wait time.Duration) {
	var questions []string
	for _, c := range cells {
		questions = append(questions, c.question())
	}
	answers, err := cells[0].asks.Ask(ctx, questions, wait)
	if err == nil {
		for i, c := range cells {
			c.take(answers[i])
		}
		return
	}
	for _, c := range cells {
		if ctx.Err() == nil || c.wrong == "" { // when patience ends, what was wrong before says more
			c.wrong = "not asked: " + err.Error()
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(firstWait):
	}
}

var update = flag.Bool("update", false, "write the tables of docs/features anew")

// The pages have the tables between these lines.
const (
	begin  = "<!-- test/e2e/policy has from here -->\n"
	finish = "<!-- to here -->\n"
)

// TestPages compares the pages with what TestPolicies wants. It needs no cluster.
func TestPages(t *testing.T) {
	address := []netip.Addr{netip.IPv4Unspecified()}
	b := &bed{Cluster: &sandbox.Cluster{Outside: &member.Member{}}, pods: map[string][]netip.Addr{},
		nodes: map[string][]netip.Addr{home: address, away: address},
		links: map[string][]netip.Addr{home: address, away: address}}
	for _, name := range []string{away, home} {
		b.Nodes = append(b.Nodes, &node.Node{Member: &member.Member{Spec: member.Spec{Name: name}}})
	}
	served := map[string]service{}
	for _, p := range peerPods() {
		b.pods[p.namespace+"/"+p.name], served[p.name] = address, service{clusterIPs: address}
	}
	check := func(page string, in, out []column) {
		for _, c := range slices.Concat(in, out) {
			b.pods[shop+"/"+c.pod], served[c.pod] = address, service{clusterIPs: address}
		}
		all := tables(b.cells([]string{"tcp"}, served, in, out))
		printed := "\n" + strings.Join(all, "\n") + "\n"
		file := "../../../docs/features/" + page
		text, err := os.ReadFile(file)
		must(t, err)
		before, after, ok := strings.Cut(string(text), begin)
		have, after, closed := strings.Cut(after, finish)
		if *update && ok && closed {
			must(t, os.WriteFile(file, []byte(before+begin+printed+finish+after), 0o644))
			have = printed
		}
		if !ok || !closed || have != printed {
			t.Errorf("%s must have the tables of this test between %q and %q: write them with -update", page, begin, finish)
		}
	}
	in, out := columnsOf(rules())
	check("policy.md", in, out)
	in, out = columnsOf(crossed())
	check("policy-tables.md", in, out)
	in, out = tieredColumns(tieredRules(nil))
	check("cluster-policy.md", in, out)
	in, out = tieredColumns(crossedTiers(nil))
	check("cluster-policy-tables.md", in, out)
}
